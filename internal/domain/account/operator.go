package account

import (
	"context"
	"math"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// operatorOps are the rows of those who run the platform. A row that shows
// one tenant's data notes the look first.
func (s *Service) operatorOps() []op.Op {
	orgs, users, write := policy.Require(policy.AdminReadOrgs), policy.Require(policy.AdminReadUsers), policy.Require(policy.AdminAccounts)
	return []op.Op{
		op.New(op.Row{ID: "account.platform_overview", Method: "GET", Path: "/v1/admin/overview", Group: group, Rule: policy.Require(policy.AdminReadPlat),
			Summary: "The platform at a glance",
			Doc:     "For operators: what there is on the whole server, counted as of now. The look is written to the platform's audit log."}, s.overview),
		op.New(op.Row{ID: "account.orgs_list", Method: "GET", Path: "/v1/admin/accounts", Group: group, Rule: orgs,
			Paging:  &op.Paging{Default: 25, Max: 100, Q: true, Filters: map[string][]string{"billing": {billingPaying, billingComped, billingPaused}}},
			Summary: "All accounts, newest first; q searches the login",
			Doc:     "For operators. The look is written to the platform's audit log."}, s.orgs),
		op.New(op.Row{ID: "account.org_get", Method: "GET", Path: "/v1/admin/accounts/{id}", Group: group, Rule: orgs,
			Summary: "One account in detail; the look is noted",
			Doc:     "For operators: its tier, seats, members and what it has going on. The look is written to the platform's audit log with the account's id."}, s.org),
		op.New(op.Row{ID: "account.users_list", Method: "GET", Path: "/v1/admin/users", Group: group, Rule: users,
			Paging:  &op.Paging{Default: 25, Max: 100, Q: true, Filters: map[string][]string{"status": {"approved", "waitlisted"}}},
			Summary: "All users, newest first; q searches the login",
			Doc:     "For operators. The look is written to the platform's audit log."}, s.users),
		op.New(op.Row{ID: "account.user_get", Method: "GET", Path: "/v1/admin/users/{id}", Group: group, Rule: users,
			Summary: "One person: registry row, last activity, accounts and grants; the look is noted",
			Doc:     "For operators. The look is written to the platform's audit log with the user's id."}, s.user),
		op.New(op.Row{ID: "account.set_member_role", Method: "PATCH", Path: "/v1/admin/accounts/{id}/members/{userId}", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 409, Slug: "last_owner"}},
			Summary: "Set a member's role in any account",
			Doc:     "For operators, in any account; the change stands in that account's audit log with the operator's name. The last owner keeps that role."}, s.setRole),
		op.New(op.Row{ID: "account.set_tier", Method: "PUT", Path: "/v1/admin/accounts/{id}/tier", Group: group, Rule: write,
			Summary: "Set an account's tier",
			Doc:     "The tier decides whether private repositories are covered. The change stands in the account's audit log."}, s.setTier),
		op.New(op.Row{ID: "account.set_seats", Method: "PUT", Path: "/v1/admin/accounts/{id}/seats", Group: group, Rule: write,
			Summary: "Set how many AI developers an account pays for",
			Doc:     "Seats are how many agents the account may run at once, with those of its grants. Runs that go on beyond a lower number are not stopped."}, s.setSeats),
		op.New(op.Row{ID: "account.set_spend_cap", Method: "PUT", Path: "/v1/admin/accounts/{id}/spend-cap", Group: group, Rule: write,
			Summary: "Set an account's monthly cap in dollars, or null for the default",
			Doc:     "Holds beside the account's own cap: the lower one counts. Tasks that the old cap had held go back into the queue when the new one leaves room."}, s.setSpendCap),
	}
}

// How an account's capacity is paid for. That capacity is the seats and what
// was given, to the account or to an owner whose gifts count in it; howPaid says
// which is which.
const (
	billingPaying = "paying" // it has seats, of a tier whose seats are paid for
	billingComped = "comped" // what it has was given, or it is a verified open-source project
	billingPaused = "paused" // it has none: nothing of it runs until it gets some
)

// PlatformOverview counts what there is now.
type PlatformOverview struct {
	_                struct{} `doc:"What there is on the whole server, counted as of now." schema:"PlatformOverview"`
	Accounts         int64    `json:"accounts" example:"12" doc:"accounts"`
	Users            int64    `json:"users" example:"40" doc:"people"`
	UsersWaitlisted  int64    `json:"users_waitlisted" example:"3" doc:"people who were not let through the gate"`
	Repos            int64    `json:"repos" example:"55" doc:"repositories, enabled or not"`
	Boxes            int64    `json:"boxes" example:"9" doc:"boxes that are enrolled"`
	BoxesOnline      int64    `json:"boxes_online" example:"8" doc:"boxes that are online"`
	TasksQueued      int64    `json:"tasks_queued" example:"14" doc:"tasks that are pending"`
	TasksInFlight    int64    `json:"tasks_in_flight" example:"6" doc:"tasks that a box holds"`
	TasksStuck       int64    `json:"tasks_stuck" example:"0" doc:"running without progress for 15 minutes, or out of rounds; those that wait for a person are not counted"`
	RunsLive         int64    `json:"runs_live" example:"6" doc:"runs that have not ended"`
	PullsOpen        int64    `json:"pulls_open" example:"21" doc:"pull requests that are open"`
	ApprovalsPending int64    `json:"approvals_pending" example:"4" doc:"questions about pull requests that wait for a person"`
	EscalationsOpen  int64    `json:"escalations_open" example:"2" doc:"escalations that nobody has resolved"`
	GrantsActive     int64    `json:"grants_active" example:"5" doc:"grants that are neither revoked nor expired"`
	OSSPending       int64    `json:"oss_pending" db:"oss_pending" example:"1" doc:"open-source applications that wait for a decision"`
}

func (s *Service) overview(ctx context.Context, _ op.None) (out PlatformOverview, err error) {
	err = event.Looking(ctx, s.DB, event.Look{Capability: "account.platform_overview"}, func(tx *db.Tx) error {
		out, err = glance.One(tx, tx.Micros())
		return err
	})
	return out, err
}

// OrgSummary is an account as operators list it.
type OrgSummary struct {
	_         struct{}  `doc:"An account as operators list it." schema:"OrgSummary"`
	ID        string    `json:"id" format:"uuid" doc:"id of the account"`
	Login     string    `json:"login" example:"acme" doc:"its name"`
	Kind      string    `json:"kind" enum:"organization,user" doc:"user: one person's own"`
	Tier      string    `json:"tier" enum:"free,self_hosted,oss_verified" doc:"what it is entitled to"`
	Seats     int64     `json:"seats" example:"2" doc:"AI developers of its own: paid for, or, on the tier self_hosted, come with the server"`
	Members   int64     `json:"members" example:"5" doc:"how many people belong to it"`
	FreeDevs  int64     `json:"free_devs" doc:"AI developers by active grants to the account, or to an owner who has no older account, on top of the seats"`
	Billing   *string   `json:"billing" enum:"paying,comped,paused" example:"null" doc:"paused: neither seats nor free AI developers, so that nothing runs; comped: a verified open-source project, or what it has was given, whether or not the server's own seats (tier self_hosted) come with it; paying: seats of the tier free; null: seats of the server and nothing else"`
	CreatedAt time.Time `json:"created_at" doc:"when it was made"`
}

// RosterMember is a member as operators see them.
type RosterMember struct {
	_      struct{}    `doc:"A member as operators see them." schema:"RosterMember"`
	UserID string      `json:"user_id" format:"uuid" doc:"id of the user"`
	Login  string      `json:"login" example:"ada" doc:"login of the user"`
	Name   string      `json:"name" example:"Ada Lovelace" doc:"as they call themselves"`
	Role   policy.Role `json:"role" enum:"viewer,member,admin,owner" example:"owner" doc:"their role in the account"`
}

// OrgDetail is one account as operators see it.
type OrgDetail struct {
	_ struct{} `doc:"One account as operators see it." schema:"OrgDetail"`
	OrgSummary
	SpendCapUSD   *float64       `json:"spend_cap_usd" example:"500" doc:"the operator's cap, in US dollars a month; null: the default"`
	OSSReviewedAt *time.Time     `json:"oss_reviewed_at" example:"null" doc:"when its open-source application was last decided; null: never"`
	Repos         int64          `json:"repos" example:"7" doc:"repositories, enabled or not"`
	Boxes         int64          `json:"boxes" example:"3" doc:"boxes that are enrolled"`
	TasksOpen     int64          `json:"tasks_open" example:"4" doc:"tasks that are not over"`
	Roster        []RosterMember `json:"roster" doc:"its members"`
}

type listIn struct{ op.PageIn }

func (s *Service) orgs(ctx context.Context, in listIn) (op.Page[OrgSummary], error) {
	var rows []OrgSummary
	err := event.Looking(ctx, s.DB, event.Look{Capability: "account.orgs_list"}, func(tx *db.Tx) (err error) {
		rows, err = listOrgs(tx, in.PageIn)
		return err
	})
	return op.NewPage(in.PageIn, rows, func(o OrgSummary) []string { return op.TimeKey(o.CreatedAt, o.ID) }), err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the account or user"`
}

func (s *Service) org(ctx context.Context, in idIn) (out OrgDetail, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if out, err = orgDetail(tx, in.ID); err != nil {
			return err
		}
		return event.Trail(tx, event.Look{Capability: "account.org_get", Account: in.ID})
	})
	return out, err
}

// PlatformUser is a person as operators list them.
type PlatformUser struct {
	_ struct{} `doc:"A person as operators list them." schema:"PlatformUser"`
	User
	Approved  bool      `json:"approved" doc:"whether they were let through the gate; false: waitlisted"`
	CreatedAt time.Time `json:"created_at" doc:"when they first signed in"`
}

// UserOrg is an account that a person belongs to.
type UserOrg struct {
	_         struct{}    `doc:"An account that a person belongs to." schema:"UserOrg"`
	AccountID string      `json:"account_id" format:"uuid" doc:"id of the account"`
	Login     string      `json:"login" example:"acme" doc:"login of the account"`
	Kind      string      `json:"kind" enum:"organization,user" doc:"user: one person's own"`
	Role      policy.Role `json:"role" enum:"viewer,member,admin,owner" example:"owner" doc:"the person's role in it"`
}

// PlatformUserDetail is one person as operators see them.
type PlatformUserDetail struct {
	_ struct{} `doc:"One person as operators see them." schema:"PlatformUserDetail"`
	PlatformUser
	LastActiveAt *time.Time                      `json:"last_active_at" doc:"the later of the newest sign-in and the newest use of a token; null: there was neither"`
	Orgs         []UserOrg                       `json:"orgs" doc:"the accounts they belong to"`
	Grants       op.Page[grant.EntitlementGrant] `json:"grants" doc:"the newest 25; next_cursor goes on at grant.list, with the same user_id"`
}

func (s *Service) users(ctx context.Context, in listIn) (op.Page[PlatformUser], error) {
	var rows []PlatformUser
	err := event.Looking(ctx, s.DB, event.Look{Capability: "account.users_list"}, func(tx *db.Tx) (err error) {
		rows, err = listUsers(tx, in.PageIn)
		return err
	})
	return op.NewPage(in.PageIn, rows, func(u PlatformUser) []string { return op.TimeKey(u.CreatedAt, u.ID) }), err
}

func (s *Service) user(ctx context.Context, in idIn) (out PlatformUserDetail, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if out, err = userDetail(tx, in.ID); err != nil {
			return err
		}
		return event.Trail(tx, event.Look{Capability: "account.user_get", User: in.ID})
	})
	return out, err
}

type roleIn struct {
	ID     string `json:"id" format:"uuid" doc:"id of the account"`
	UserID string `json:"userId" format:"uuid" doc:"id of the member"`
	Role   string `json:"role" enum:"viewer,member,admin,owner" doc:"the role they are to have"`
}

// RoleChange is what became of a member's role.
type RoleChange struct {
	_            struct{}    `doc:"What became of a member's role." schema:"RoleChange"`
	AccountID    string      `json:"account_id" format:"uuid" doc:"id of the account"`
	UserID       string      `json:"user_id" format:"uuid" doc:"id of the member"`
	Role         policy.Role `json:"role" enum:"viewer,member,admin,owner" example:"admin" doc:"the role after the call"`
	PreviousRole policy.Role `json:"previous_role" enum:"viewer,member,admin,owner" example:"member" doc:"the role before it"`
	Changed      bool        `json:"changed" doc:"false: the member had that role"`
}

func (s *Service) setRole(ctx context.Context, in roleIn) (out RoleChange, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := lockOrg(tx, in.ID); err != nil {
			return err
		}
		// The members' own routes hold the owners, not the account.
		owners, err := people.LockOwners(tx, in.ID)
		if err != nil {
			return err
		}
		was, ok, err := people.Role(tx, in.ID, in.UserID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("member")
		}
		out = RoleChange{AccountID: in.ID, UserID: in.UserID, Role: policy.Role(in.Role), PreviousRole: was, Changed: string(was) != in.Role}
		if !out.Changed {
			return nil
		}
		if out.PreviousRole == policy.Owner && len(owners) < 2 {
			return fault.Reason("last_owner", "The account would have no owner left.")
		}
		if err := people.SetRole(tx, in.ID, in.UserID, policy.Role(in.Role)); err != nil {
			return err
		}
		if err := event.RightsChanged.Send(tx, in.UserID); err != nil {
			return err
		}
		// What an owner was given counts here from now on, or elsewhere.
		home, err := grant.Home(tx, in.UserID)
		if err != nil {
			return err
		}
		s.wake(tx, in.ID)
		s.wake(tx, home)
		return RoleChangedEvent.Operated(tx, event.Subject{ID: in.UserID, Account: in.ID},
			RoleChanged{PreviousRole: out.PreviousRole, Role: out.Role}, map[string]any{"operator": policy.From(ctx).Label()})
	})
	return out, err
}

// wake tells who waits for work in an account that its capacity, or what it
// covers, may be another.
func (s *Service) wake(tx *db.Tx, account string) {
	s.Hub.Notify(tx, event.QueueTopic(account), event.QueueTopic(""))
}

// change does one thing to an account and answers how it is then. do answers
// the data of the event that is recorded of it.
func change[T any](
	ctx context.Context, s *Service, account string, confirm bool, kind event.Kind[T], do func(*db.Tx, OrgDetail) (T, error),
) (out OrgDetail, err error) {
	if !confirm {
		return out, fault.Field("confirm", "must be true")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := lockOrg(tx, account); err != nil {
			return err
		}
		before, err := orgDetail(tx, account)
		if err != nil {
			return err
		}
		data, err := do(tx, before)
		if err != nil {
			return err
		}
		if out, err = orgDetail(tx, account); err != nil {
			return err
		}
		s.wake(tx, account)
		return kind.Operated(tx, event.Subject{ID: account, Account: account}, data, nil)
	})
	return out, err
}

type tierIn struct {
	ID      string `json:"id" format:"uuid" doc:"id of the account"`
	Tier    string `json:"tier" enum:"free,self_hosted,oss_verified" doc:"what it is to be entitled to"`
	Confirm bool   `json:"confirm" doc:"must be true"`
}

func (s *Service) setTier(ctx context.Context, in tierIn) (OrgDetail, error) {
	return change(ctx, s, in.ID, in.Confirm, tierSetEvent, func(tx *db.Tx, before OrgDetail) (tierSetData, error) {
		return tierSetData{From: before.Tier, To: in.Tier}, people.SetTier(tx, in.ID, in.Tier)
	})
}

type seatsIn struct {
	ID      string `json:"id" format:"uuid" doc:"id of the account"`
	Seats   int64  `json:"seats" minimum:"0" maximum:"100000" example:"4" doc:"how many AI developers the account pays for"`
	Confirm bool   `json:"confirm" doc:"must be true"`
}

func (s *Service) setSeats(ctx context.Context, in seatsIn) (OrgDetail, error) {
	return change(ctx, s, in.ID, in.Confirm, seatsSetEvent, func(tx *db.Tx, before OrgDetail) (seatsSetData, error) {
		return seatsSetData{From: before.Seats, To: in.Seats}, people.SetSeats(tx, in.ID, in.Seats)
	})
}

type capIn struct {
	ID      string   `json:"id" format:"uuid" doc:"id of the account"`
	USD     *float64 `json:"usd" required:"true" maximum:"1000000000" example:"500" doc:"US dollars a month, above 0; null: the default"`
	Confirm bool     `json:"confirm" doc:"must be true"`
}

func (s *Service) setSpendCap(ctx context.Context, in capIn) (OrgDetail, error) {
	var micros *int64
	if in.USD != nil {
		m := int64(math.Round(*in.USD * 1e6))
		if m < 1 {
			return OrgDetail{}, fault.Field("usd", "must be above 0, or null for the default")
		}
		micros = &m
	}
	return change(ctx, s, in.ID, in.Confirm, capSetEvent, func(tx *db.Tx, before OrgDetail) (capSetData, error) {
		err := people.SetSpendCap(tx, in.ID, micros)
		if err == nil {
			err = Capped.Send(tx, Cap{AccountID: in.ID, Micros: micros})
		}
		return capSetData{From: before.SpendCapUSD, To: in.USD}, err
	})
}

// lockOrg holds an account until the transaction ends; 404 if there is none.
func lockOrg(tx *db.Tx, account string) error {
	if !id.Valid(account) {
		return fault.Missing("account")
	}
	ok, err := people.LockAccount(tx, account)
	if err == nil && !ok {
		err = fault.Missing("account")
	}
	return err
}
