package budget

import (
	"cmp"
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
	"yardmaster/internal/policy"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadBilling), policy.Require(policy.WriteBilling)
	return []op.Op{
		op.New(op.Row{
			ID: "billing.spend_cap_get", Method: "GET", Path: "/v1/billing/spend-cap", Group: group, Rule: read,
			Summary: "What the account may spend on models in a month, and has spent in this one",
			Doc: "Of the account's own cap and the operator's the lower one holds. A call to a model that would go beyond " +
				"it is refused, and its task is held.",
		}, s.capGet),
		op.New(op.Row{
			ID: "billing.spend_cap_set", Method: "PUT", Path: "/v1/billing/spend-cap", Group: group, Rule: write,
			Summary: "Cap what the account may spend on models in a month; null takes the cap away",
			Doc: "Holds from the next call of a model on. Tasks that the old cap had held go back into the queue when the " +
				"new one leaves room.",
		}, s.capSet),
		op.New(op.Row{
			ID: "billing.member_cap_set", Method: "PUT", Path: "/v1/billing/spend-cap/members/{userId}", Group: group, Rule: write,
			Summary: "Cap what the work that one member asked for, and all that follows from it, may spend in a month; null takes the cap away",
			Doc: "Counts the tasks that the member filed. Tasks that the old cap had held go back into the queue when the " +
				"new one leaves room. 404 for somebody who is no member.",
		}, s.memberSet),
		op.New(op.Row{
			ID: "project.budget_set", Method: "PUT", Path: "/v1/repos/{owner}/{repo}/budget", Group: group, Rule: write,
			Summary: "Cap what the work on one repository may spend in a month; null takes the cap away",
			Doc:     "Tasks that the old cap had held go back into the queue when the new one leaves room.",
		}, s.repoSet),
		op.New(op.Row{
			ID: "billing.key_budget_set", Method: "PUT", Path: "/v1/billing/keys/{id}/budget", Group: group, Rule: write,
			Summary: "Cap what calls over a key of the pool may cost in a month; null takes the cap away",
			Doc: "A call that it has no room for goes over another key. Where there is none, its task is held, and goes on " +
				"when the cap leaves room or another key is added.",
		}, s.keySet),
		op.New(op.Row{
			ID: "billing.usage", Method: "GET", Path: "/v1/billing/usage", Group: group, Rule: policy.Require(policy.ReadUsage),
			Summary: "What models cost the account in a month, part by part, as JSON or CSV",
			Doc:     "Spending is kept for good, its parts and numbers of calls for about three months.",
		}, s.usage),
		op.New(op.Row{
			ID: "task.budget_set", Method: "PUT", Path: "/v1/tasks/{id}/budget", Group: "Tasks", Rule: policy.Require(policy.WriteTasks),
			Refuses: []op.Refusal{{Status: 409, Slug: "task_terminal"}},
			Summary: "Give a task another budget; a task that its old one had stopped goes on",
			Doc: "null leaves it to the repository's policy. Refused when the task is over; one that failed may be " +
				"redispatched with more.",
		}, s.taskSet),
		op.New(op.Row{
			ID: "plan.budget_set", Method: "PUT", Path: "/v1/plans/{planId}/budget", Group: "Plans",
			Rule:    policy.Require(policy.WriteTasks),
			Summary: "Cap what a plan's tasks may spend together; null takes the cap away",
			Doc:     "Tasks that the old cap had held go back into the queue when the new one leaves room.",
		}, s.planSet),
	}
}

// SpendCap is the limit of an account's spending on models in a month, and the state
// of this month.
type SpendCap struct {
	_           struct{} `doc:"What an account may spend on models in a month, and has spent." schema:"SpendCap"`
	USD         *float64 `json:"usd" example:"500" doc:"the account's own cap, in US dollars; null: none"`
	OperatorUSD *float64 `json:"operator_usd" example:"null" doc:"the cap that the platform's operator set, in US dollars; null: none"`
	Period      string   `json:"period" example:"2026-03" doc:"the month, YYYY-MM in UTC"`
	Spent       string   `json:"spent_usd" format:"decimal" example:"112.40" doc:"decimal US dollars, of calls with a known price"`
	Reserved    string   `json:"reserved_usd" format:"decimal" example:"1.20" doc:"decimal US dollars, set aside for calls under way"`
	Left        *string  `json:"left_usd" format:"decimal" example:"386.40" doc:"decimal US dollars, under the lower cap; null without one"`
}

func (s *Service) capGet(ctx context.Context, _ op.None) (out SpendCap, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = spendCap(tx)
		return err
	})
	return out, err
}

// Cap returns the cap of tx.Account and the state of this month.
func (s *Service) Cap(tx *db.Tx) (SpendCap, error) { return spendCap(tx) }

// spendCap is the cap of tx.Account and the state of this month.
func spendCap(tx *db.Tx) (SpendCap, error) {
	own, err := limitOf(tx, Account, tx.Account)
	if err != nil {
		return SpendCap{}, err
	}
	operator, err := people.SpendCap(tx, tx.Account)
	if err != nil {
		return SpendCap{}, err
	}
	now := month(tx.Now)
	b, _, err := selectBalance.Maybe(tx, selectBalanceArgs{AccountID: tx.Account, Scope: Account, Ref: tx.Account, Period: now})
	if err != nil {
		return SpendCap{}, err
	}
	out := SpendCap{
		USD: money.USD(own), OperatorUSD: money.USD(operator), Period: now,
		Spent: money.Dollars(b.Spent), Reserved: money.Dollars(b.Reserved),
	}
	if least := lower(own, operator); least != nil {
		left := money.Dollars(max(*least-b.Spent-b.Reserved, 0))
		out.Left = &left
	}
	return out, nil
}

type capIn struct {
	USD *float64 `json:"usd" required:"true" minimum:"0" maximum:"10000000" example:"500" doc:"US dollars; null: no limit"`
}

func (s *Service) capSet(ctx context.Context, in capIn) (out SpendCap, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := s.setLimit(tx, Account, tx.Account, capSetEvent, money.Micros(in.USD)); err != nil {
			return err
		}
		out, err = spendCap(tx)
		return err
	})
	return out, err
}

// setLimit stores a limit with its audit row, and frees the work that the old limit
// has stopped.
func (s *Service) setLimit(tx *db.Tx, scope, ref string, kind event.Kind[limitData], to *int64) error {
	before, err := limitOf(tx, scope, ref)
	if err != nil {
		return err
	}
	if err := storeLimit(tx, scope, ref, to); err != nil {
		return err
	}
	if err := s.Recheck(tx, tx.Account); err != nil {
		return err
	}
	return kind.Record(tx, event.Subject{ID: ref}, limitData{BeforeUSD: money.USD(before), USD: money.USD(to)})
}

// MonthCap is a limit for a month of a part of the spending, with what is counted under it.
type MonthCap struct {
	USD      *float64 `json:"usd" example:"50" doc:"US dollars a month; null: no cap"`
	Spent    string   `json:"spent_usd" format:"decimal" example:"41.10" doc:"decimal US dollars, in the month"`
	Reserved string   `json:"reserved_usd" format:"decimal" example:"0.30" doc:"decimal US dollars, set aside for calls under way"`
}

func monthCap(limit *int64, spent, reserved int64) MonthCap {
	return MonthCap{USD: money.USD(limit), Spent: money.Dollars(spent), Reserved: money.Dollars(reserved)}
}

type memberIn struct {
	UserID string `json:"userId" format:"uuid" doc:"id of the member"`
	capIn
}

// MemberCap is a member's limit for a month.
type MemberCap struct {
	_      struct{} `doc:"What the work that one member filed may spend." schema:"MemberCap"`
	UserID string   `json:"user_id" format:"uuid" doc:"id of the member"`
	USD    *float64 `json:"usd" example:"50" doc:"US dollars a month; null: no cap"`
}

func (s *Service) memberSet(ctx context.Context, in memberIn) (MemberCap, error) {
	to := money.Micros(in.USD)
	out := MemberCap{UserID: in.UserID, USD: money.USD(to)}
	err := s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		ok, err := people.IsMember(tx, in.UserID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("member")
		}
		return s.setLimit(tx, Member, in.UserID, memberSetEvent, to)
	})
	return out, err
}

type repoIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" doc:"name of the repository"`
	capIn
}

// RepoCap is a repository's limit for a month.
type RepoCap struct {
	_      struct{} `doc:"What the work on one repository may spend in a month, and has spent." schema:"RepoCap"`
	RepoID string   `json:"repo_id" format:"uuid" doc:"id of the repository"`
	Repo   string   `json:"repo" example:"acme/web" doc:"owner/name"`
	MonthCap
}

func (s *Service) repoSet(ctx context.Context, in repoIn) (out RepoCap, err error) {
	to := money.Micros(in.USD)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		id, name, ok, err := s.Work.Repo(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("repository")
		}
		if err := s.setLimit(tx, Repo, id, repoSetEvent, to); err != nil {
			return err
		}
		b, _, err := selectBalance.Maybe(tx, selectBalanceArgs{AccountID: tx.Account, Scope: Repo, Ref: id, Period: month(tx.Now)})
		out = RepoCap{RepoID: id, Repo: name, MonthCap: monthCap(to, b.Spent, b.Reserved)}
		return err
	})
	return out, err
}

type keyIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the key"`
	capIn
}

// KeyCap is a key's limit for a month.
type KeyCap struct {
	_     struct{} `doc:"What calls over one key of the pool may cost in a month, and have cost." schema:"KeyCap"`
	KeyID string   `json:"key_id" format:"uuid" doc:"id of the key"`
	Label string   `json:"label" example:"Team key" doc:"name to tell it by"`
	MonthCap
}

func (k limitedKey) wire() KeyCap {
	return KeyCap{KeyID: k.ID, Label: k.Label, MonthCap: monthCap(k.Micros, k.Spent, k.Reserved)}
}

func (s *Service) keySet(ctx context.Context, in keyIn) (out KeyCap, err error) {
	to := money.Micros(in.USD)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := s.keyOf(tx, in.ID); err != nil {
			return err
		}
		now := firstOf(tx.Now)
		if _, err := openKey.Exec(tx, openKeyArgs{
			AccountID: tx.Account, Ref: in.ID, Period: month(tx.Now), First: dayOf(now), Next: dayOf(now.AddDate(0, 1, 0)),
		}); err != nil {
			return err
		}
		if err := s.setLimit(tx, Key, in.ID, keySetEvent, to); err != nil {
			return err
		}
		k, err := s.keyOf(tx, in.ID)
		out = k.wire()
		return err
	})
	return out, err
}

// keyOf finds a key of the pool of tx.Account.
func (s *Service) keyOf(tx *db.Tx, id string) (limitedKey, error) {
	all, err := s.keysOf(tx, tx.Account, month(tx.Now))
	for _, k := range all {
		if k.ID == id {
			return k, err
		}
	}
	return limitedKey{}, cmp.Or(err, error(fault.Missing("key")))
}

type taskIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the task"`
	capIn
}

// TaskCap is a task's budget.
type TaskCap struct {
	_      struct{} `doc:"A task's budget." schema:"TaskCap"`
	TaskID string   `json:"task_id" format:"uuid" doc:"id of the task"`
	USD    *float64 `json:"usd" example:"5" doc:"US dollars for all tries; null: what the repository's policy says"`
}

func (s *Service) taskSet(ctx context.Context, in taskIn) (TaskCap, error) {
	to := money.Micros(in.USD)
	out := TaskCap{TaskID: in.ID, USD: money.USD(to)}
	err := s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		before, err := s.Work.SetTaskBudget(tx, in.ID, to)
		if err != nil {
			return err
		}
		if err := s.Recheck(tx, tx.Account); err != nil {
			return err
		}
		// Setting a task's budget also lets it go on that the limit of one run stopped:
		// its next run has a meter of its own.
		if err := s.freeRun(tx, tx.Account, in.ID); err != nil {
			return err
		}
		return taskSetEvent.Record(tx, event.Subject{ID: in.ID}, limitData{BeforeUSD: money.USD(before), USD: money.USD(to)})
	})
	return out, err
}

type planIn struct {
	PlanID string `json:"planId" format:"uuid" doc:"id of the plan"`
	capIn
}

// PlanCap is the limit of the spending of a plan's tasks together.
type PlanCap struct {
	_      struct{} `doc:"What a plan's tasks may spend together." schema:"PlanCap"`
	PlanID string   `json:"planId" format:"uuid" doc:"id of the plan"`
	USD    *float64 `json:"usd" example:"40" doc:"US dollars; null: no cap"`
}

func (s *Service) planSet(ctx context.Context, in planIn) (PlanCap, error) {
	to := money.Micros(in.USD)
	out := PlanCap{PlanID: in.PlanID, USD: money.USD(to)}
	err := s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		ok, err := s.Work.HasPlan(tx, in.PlanID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("plan")
		}
		return s.setLimit(tx, Plan, in.PlanID, planSetEvent, to)
	})
	return out, err
}
