package account

import (
	"context"
	"math"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

// operatorOps are the rows of those who run the platform. A row that shows
// one tenant's data notes the look first.
func (s *Service) operatorOps() []op.Op {
	orgs, users, write := policy.Require(policy.AdminReadOrgs), policy.Require(policy.AdminReadUsers), policy.Require(policy.AdminAccounts)
	return []op.Op{
		op.New(op.Row{ID: "account.platform_overview", Method: "GET", Path: "/v1/admin/overview", Group: group, Rule: policy.Require(policy.AdminReadPlat),
			Summary: "The platform at a glance"}, s.overview),
		op.New(op.Row{ID: "account.orgs_list", Method: "GET", Path: "/v1/admin/accounts", Group: group, Rule: orgs,
			Paging:  &op.Paging{Default: 25, Max: 100, Q: true, Filters: map[string][]string{"billing": {billingPaying, billingComped, billingPaused}}},
			Summary: "All accounts, newest first; q searches the login"}, s.orgs),
		op.New(op.Row{ID: "account.org_get", Method: "GET", Path: "/v1/admin/accounts/{id}", Group: group, Rule: orgs,
			Summary: "One account in detail; the look is noted"}, s.org),
		op.New(op.Row{ID: "account.users_list", Method: "GET", Path: "/v1/admin/users", Group: group, Rule: users,
			Paging:  &op.Paging{Default: 25, Max: 100, Q: true, Filters: map[string][]string{"status": {"approved", "waitlisted"}}},
			Summary: "All users, newest first; q searches the login"}, s.users),
		op.New(op.Row{ID: "account.user_get", Method: "GET", Path: "/v1/admin/users/{id}", Group: group, Rule: users,
			Summary: "One person: registry row, last activity, accounts and grants; the look is noted"}, s.user),
		op.New(op.Row{ID: "account.set_member_role", Method: "PATCH", Path: "/v1/admin/accounts/{id}/members/{userId}", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 409, Slug: "last_owner"}},
			Summary: "Set a member's role in any account"}, s.setRole),
		op.New(op.Row{ID: "account.set_tier", Method: "PUT", Path: "/v1/admin/accounts/{id}/tier", Group: group, Rule: write,
			Summary: "Set an account's tier"}, s.setTier),
		op.New(op.Row{ID: "account.set_seats", Method: "PUT", Path: "/v1/admin/accounts/{id}/seats", Group: group, Rule: write,
			Summary: "Set how many AI developers an account pays for"}, s.setSeats),
		op.New(op.Row{ID: "account.set_spend_cap", Method: "PUT", Path: "/v1/admin/accounts/{id}/spend-cap", Group: group, Rule: write,
			Summary: "Set an account's monthly cap in dollars, or null for the default"}, s.setSpendCap),
	}
}

// How an account's capacity is paid for. Nothing collects payments yet, so
// that no account is paying or paused.
const (
	billingPaying = "paying"
	billingComped = "comped" // by a grant, or as a verified open-source project
	billingPaused = "paused"
)

// PlatformOverview counts what there is now.
type PlatformOverview struct {
	Accounts         int64 `json:"accounts"`
	Users            int64 `json:"users"`
	UsersWaitlisted  int64 `json:"users_waitlisted"`
	Repos            int64 `json:"repos"`
	Boxes            int64 `json:"boxes" doc:"enrolled"`
	BoxesOnline      int64 `json:"boxes_online"`
	TasksQueued      int64 `json:"tasks_queued"`
	TasksInFlight    int64 `json:"tasks_in_flight"`
	TasksStuck       int64 `json:"tasks_stuck"`
	RunsLive         int64 `json:"runs_live"`
	PullsOpen        int64 `json:"pulls_open"`
	ApprovalsPending int64 `json:"approvals_pending"`
	EscalationsOpen  int64 `json:"escalations_open"`
	GrantsActive     int64 `json:"grants_active"`
	OSSPending       int64 `json:"oss_pending" db:"oss_pending" doc:"open-source applications that wait for a decision"`
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
	ID        string    `json:"id"`
	Login     string    `json:"login"`
	Kind      string    `json:"kind"`
	Tier      string    `json:"tier"`
	Seats     int64     `json:"seats" doc:"AI developers the account pays for"`
	Members   int64     `json:"members"`
	Billing   *string   `json:"billing" doc:"paying, comped or paused; null: none of them"`
	CreatedAt time.Time `json:"created_at"`
}

// RosterMember is a member as operators see them.
type RosterMember struct {
	UserID string      `json:"user_id"`
	Login  string      `json:"login"`
	Name   string      `json:"name"`
	Role   policy.Role `json:"role"`
}

// OrgDetail is one account as operators see it.
type OrgDetail struct {
	OrgSummary
	FreeDevs      int64          `json:"free_devs" doc:"AI developers by active grants, on top of the seats"`
	SpendCapUSD   *float64       `json:"spend_cap_usd" doc:"a month; null: the default"`
	OSSReviewedAt *time.Time     `json:"oss_reviewed_at"`
	Repos         int64          `json:"repos"`
	Boxes         int64          `json:"boxes" doc:"enrolled"`
	TasksOpen     int64          `json:"tasks_open" doc:"not ended"`
	Roster        []RosterMember `json:"roster"`
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
	ID string `json:"id"`
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
	User
	Approved  bool      `json:"approved" doc:"false: waitlisted"`
	CreatedAt time.Time `json:"created_at"`
}

// UserOrg is an account that a person belongs to.
type UserOrg struct {
	AccountID string      `json:"account_id"`
	Login     string      `json:"login"`
	Kind      string      `json:"kind"`
	Role      policy.Role `json:"role"`
}

// PlatformUserDetail is one person as operators see them.
type PlatformUserDetail struct {
	PlatformUser
	LastActiveAt *time.Time                         `json:"last_active_at" doc:"the later of the newest sign-in and the newest use of a token; null: neither is known"`
	Orgs         []UserOrg                          `json:"orgs"`
	Grants       op.Bounded[grant.EntitlementGrant] `json:"grants" doc:"the newest; grant.list has the rest"`
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
	ID     string `json:"id"`
	UserID string `json:"userId"`
	Role   string `json:"role" enum:"viewer,member,admin,owner"`
}

// RoleChange is what became of a member's role.
type RoleChange struct {
	AccountID    string      `json:"account_id"`
	UserID       string      `json:"user_id"`
	Role         policy.Role `json:"role"`
	PreviousRole policy.Role `json:"previous_role"`
	Changed      bool        `json:"changed" doc:"false: the member had that role"`
}

func (s *Service) setRole(ctx context.Context, in roleIn) (out RoleChange, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := lockOrg(tx, in.ID); err != nil {
			return err
		}
		was, ok, err := roleOf.Maybe(tx, in.ID, in.UserID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("member")
		}
		out = RoleChange{AccountID: in.ID, UserID: in.UserID, Role: policy.Role(in.Role), PreviousRole: policy.Role(was), Changed: was != in.Role}
		if !out.Changed {
			return nil
		}
		if out.PreviousRole == policy.Owner {
			owners, err := ownersOf.One(tx, in.ID)
			if err != nil {
				return err
			}
			if owners == 1 {
				return fault.Reason("last_owner", "The account would have no owner left.")
			}
		}
		if _, err := setRole.Exec(tx, in.ID, in.UserID, in.Role); err != nil {
			return err
		}
		return event.Record(tx, event.Change{Kind: "org_member.role_changed", Object: in.UserID, Account: in.ID,
			Data: map[string]any{"operator": policy.From(ctx).Label(), "previous_role": was, "role": in.Role}})
	})
	return out, err
}

// change does one thing to an account and answers how it is then. do answers
// what was, and what is.
func (s *Service) change(ctx context.Context, account string, confirm bool, kind string, do func(*db.Tx, OrgDetail) (from, to any, err error)) (out OrgDetail, err error) {
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
		from, to, err := do(tx, before)
		if err != nil {
			return err
		}
		if out, err = orgDetail(tx, account); err != nil {
			return err
		}
		return event.Record(tx, event.Change{Kind: kind, Object: account, Account: account, Data: map[string]any{"from": from, "to": to}})
	})
	return out, err
}

type tierIn struct {
	ID      string `json:"id"`
	Tier    string `json:"tier" enum:"free,self_hosted,oss_verified"`
	Confirm bool   `json:"confirm" doc:"must be true"`
}

func (s *Service) setTier(ctx context.Context, in tierIn) (OrgDetail, error) {
	return s.change(ctx, in.ID, in.Confirm, "account.set_tier", func(tx *db.Tx, before OrgDetail) (any, any, error) {
		return before.Tier, in.Tier, moveTier(tx, in.ID, in.Tier)
	})
}

type seatsIn struct {
	ID      string `json:"id"`
	Seats   int64  `json:"seats" minimum:"0" maximum:"100000"`
	Confirm bool   `json:"confirm" doc:"must be true"`
}

func (s *Service) setSeats(ctx context.Context, in seatsIn) (OrgDetail, error) {
	return s.change(ctx, in.ID, in.Confirm, "account.set_seats", func(tx *db.Tx, before OrgDetail) (any, any, error) {
		_, err := setSeats.Exec(tx, in.ID, in.Seats)
		return before.Seats, in.Seats, err
	})
}

type capIn struct {
	ID      string   `json:"id"`
	USD     *float64 `json:"usd" required:"true" maximum:"1000000000" doc:"dollars a month, above 0; null: the default"`
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
	return s.change(ctx, in.ID, in.Confirm, "account.set_spend_cap", func(tx *db.Tx, before OrgDetail) (any, any, error) {
		_, err := setCap.Exec(tx, in.ID, micros)
		if err == nil && s.Capped != nil {
			err = s.Capped(tx, in.ID, micros)
		}
		return before.SpendCapUSD, in.USD, err
	})
}

// lockOrg holds an account until the transaction ends; 404 if there is none.
func lockOrg(tx *db.Tx, account string) error {
	if !id.Valid(account) {
		return fault.Missing("account")
	}
	_, ok, err := lockAccount.Maybe(tx, account)
	if err == nil && !ok {
		err = fault.Missing("account")
	}
	return err
}
