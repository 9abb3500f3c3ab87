package operator

import (
	"context"
	"math"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/member"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Account and platform operator"

// Ops returns the capabilities of this package. A capability that shows data of a
// tenant records the look first.
func (s *Service) Ops() []op.Op {
	orgs, users, write := policy.Require(policy.AdminReadOrgs), policy.Require(policy.AdminReadUsers), policy.Require(policy.AdminAccounts)
	return []op.Op{
		op.New(op.Row{
			ID:      "account.platform_overview",
			Method:  "GET",
			Path:    "/v1/admin/overview",
			Group:   group,
			Rule:    policy.Require(policy.AdminReadPlat),
			Summary: "The platform at a glance",
			Doc: "For operators: what there is on the whole server, counted as of now. The look is " +
				"written to the platform's audit log.",
		}, s.overview),
		op.New(op.Row{
			ID:     "account.orgs_list",
			Method: "GET",
			Path:   "/v1/admin/accounts",
			Group:  group,
			Rule:   orgs,
			Paging: &op.Paging{
				Default: 25,
				Max:     100,
				Q:       true,
				Filters: map[string][]string{"billing": {billingPaying, billingComped, billingPaused}},
			},
			Summary: "All accounts, newest first; q searches the login",
			Doc:     "For operators. The look is written to the platform's audit log.",
		}, s.orgs),
		op.New(op.Row{
			ID:      "account.org_get",
			Method:  "GET",
			Path:    "/v1/admin/accounts/{id}",
			Group:   group,
			Rule:    orgs,
			Summary: "One account in detail; the look is noted",
			Doc: "For operators: its tier, seats, members and what it has going on. The look is written to the platform's " +
				"audit log with the account's id.",
		}, s.org),
		op.New(op.Row{
			ID:      "account.users_list",
			Method:  "GET",
			Path:    "/v1/admin/users",
			Group:   group,
			Rule:    users,
			Paging:  &op.Paging{Default: 25, Max: 100, Q: true, Filters: map[string][]string{"status": {"approved", "waitlisted"}}},
			Summary: "All users, newest first; q searches the login",
			Doc:     "For operators. The look is written to the platform's audit log.",
		}, s.users),
		op.New(op.Row{
			ID:      "account.user_get",
			Method:  "GET",
			Path:    "/v1/admin/users/{id}",
			Group:   group,
			Rule:    users,
			Summary: "One person: registry row, last activity, accounts and grants; the look is noted",
			Doc:     "For operators. The look is written to the platform's audit log with the user's id.",
		}, s.user),
		op.New(op.Row{
			ID:      "account.set_member_role",
			Method:  "PATCH",
			Path:    "/v1/admin/accounts/{id}/members/{userId}",
			Group:   group,
			Rule:    write,
			Refuses: []op.Refusal{{Status: 409, Slug: "last_owner"}},
			Summary: "Set a member's role in any account",
			Doc: "For operators, in any account; the change stands in that account's audit log as an operator's, with the role before, and in the platform's with the operator's name. " +
				"The last owner keeps that role.",
		}, s.setRole),
		op.New(op.Row{
			ID:      "account.set_tier",
			Method:  "PUT",
			Path:    "/v1/admin/accounts/{id}/tier",
			Group:   group,
			Rule:    write,
			Summary: "Set an account's tier",
			Doc: "The tier decides whether private repositories are covered. An account that pays for seats is given team whenever it is " +
				"free; no other tier is touched by payments. The change stands in the account's audit log.",
		}, s.setTier),
		op.New(op.Row{
			ID:      "account.set_seats",
			Method:  "PUT",
			Path:    "/v1/admin/accounts/{id}/seats",
			Group:   group,
			Rule:    write,
			Summary: "Set how many AI developers an account pays for",
			Doc: "Seats are how many agents the account may run at once, with those of its grants. Runs that go on beyond a " +
				"lower number are not stopped. When what the account pays for changes, the greater of both numbers holds.",
		}, s.setSeats),
		op.New(op.Row{
			ID:      "account.set_spend_cap",
			Method:  "PUT",
			Path:    "/v1/admin/accounts/{id}/spend-cap",
			Group:   group,
			Rule:    write,
			Summary: "Set an account's monthly cap in dollars, or null for the default",
			Doc: "Holds beside the account's own cap: the lower one counts. Tasks that the old cap had held go back into " +
				"the queue when the new one leaves room.",
		}, s.setSpendCap),
	}
}

func (s *Service) overview(ctx context.Context, _ op.None) (out Overview, err error) {
	err = event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "account.platform_overview"}, func(tx *db.Tx) error {
		p, err := measure.OfPlatform(tx)
		out = Overview{
			Accounts: p.Accounts, Users: p.Users, UsersWaitlisted: p.UsersWaitlisted, Repos: p.Repos,
			Boxes: p.Boxes, BoxesOnline: p.BoxesOnline, TasksQueued: p.TasksQueued, TasksInFlight: p.TasksInFlight,
			TasksStuck: p.TasksStuck, RunsLive: p.RunsLive, PullsOpen: p.PullsOpen, ApprovalsPending: p.ApprovalsPending,
			EscalationsOpen: p.EscalationsOpen, GrantsActive: p.GrantsActive, OSSPending: p.OSSPending,
		}
		if err != nil {
			return err
		}
		d, err := measure.StoredNow(tx)
		out.Disk = Disk{DatabaseBytes: d.Database, RecordBytes: d.Records, GitBytes: d.Git, ObjectBytes: d.Objects,
			MeasuredAt: d.MeasuredAt}
		return err
	})
	return out, err
}

type listIn struct{ op.PageIn }

func (s *Service) orgs(ctx context.Context, in listIn) (op.Page[OrgSummary], error) {
	var rows []OrgSummary
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "account.orgs_list"}, func(tx *db.Tx) (err error) {
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
		return event.RecordRead(tx, event.OperatorRead{Capability: "account.org_get", Account: in.ID})
	})
	return out, err
}

func (s *Service) users(ctx context.Context, in listIn) (op.Page[User], error) {
	var rows []User
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "account.users_list"}, func(tx *db.Tx) (err error) {
		rows, err = listUsers(tx, in.PageIn)
		return err
	})
	return op.NewPage(in.PageIn, rows, func(u User) []string { return op.TimeKey(u.CreatedAt, u.ID) }), err
}

func (s *Service) user(ctx context.Context, in idIn) (out UserDetail, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if out, err = userDetail(tx, in.ID); err != nil {
			return err
		}
		return event.RecordRead(tx, event.OperatorRead{Capability: "account.user_get", User: in.ID})
	})
	return out, err
}

type roleIn struct {
	ID     string      `json:"id" format:"uuid" doc:"id of the account"`
	UserID string      `json:"userId" format:"uuid" doc:"id of the member"`
	Role   policy.Role `json:"role" doc:"the role they are to have"`
}

func (s *Service) setRole(ctx context.Context, in roleIn) (out RoleChange, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := lock(tx, in.ID); err != nil {
			return err
		}
		// The capabilities of package member lock the owners, not the account.
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
		out = RoleChange{
			AccountID:    in.ID,
			UserID:       in.UserID,
			Role:         in.Role,
			PreviousRole: was,
			Changed:      was != in.Role,
		}
		if !out.Changed {
			return nil
		}
		if out.PreviousRole == policy.Owner && len(owners) < 2 {
			return fault.Reason("last_owner", "The account would have no owner left.")
		}
		if err := people.SetRole(tx, in.ID, in.UserID, in.Role); err != nil {
			return err
		}
		if err := event.RightsChanged.Send(tx, in.UserID); err != nil {
			return err
		}
		// The grants of an owner now count in this account, or no longer do.
		home, err := people.OldestOwned(tx, in.UserID)
		if err != nil {
			return err
		}
		s.wake(tx, in.ID)
		s.wake(tx, home)
		return member.RoleChangedEvent.Operated(tx, event.Subject{ID: in.UserID, Account: in.ID},
			member.RoleChanged{PreviousRole: out.PreviousRole, Role: out.Role}, map[string]any{"operator": policy.From(ctx).Label()})
	})
	return out, err
}

// wake wakes the claims that wait in an account, because its capacity or its tier may
// have changed.
func (s *Service) wake(tx *db.Tx, account string) {
	s.Hub.Notify(tx, event.QueueTopic(account), event.QueueTopic(""))
}

// change makes one change to an account and returns the account as it is afterwards.
// do makes the change and returns the data of its event. It returns fault.NotFound if
// there is no such account, and a fault.Invalid about confirm unless confirm is true.
func change[T any](
	ctx context.Context, s *Service, account string, confirm bool, kind event.Kind[T], do func(*db.Tx, OrgDetail) (T, error),
) (out OrgDetail, err error) {
	if !confirm {
		return out, fault.Field("confirm", "must be true")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := lock(tx, account); err != nil {
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
	ID      string      `json:"id" format:"uuid" doc:"id of the account"`
	Tier    people.Tier `json:"tier" doc:"what it is to be entitled to"`
	Confirm bool        `json:"confirm" doc:"must be true"`
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

// lock locks an account until the transaction ends. It returns fault.NotFound if
// there is no such account.
func lock(tx *db.Tx, account string) error {
	if !id.Valid(account) {
		return fault.Missing("account")
	}
	ok, err := people.LockAccount(tx, account)
	if err == nil && !ok {
		err = fault.Missing("account")
	}
	return err
}
