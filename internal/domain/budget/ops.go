package budget

import (
	"context"
	"time"

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
			ID: "billing.usage", Method: "GET", Path: "/v1/billing/usage", Group: group, Rule: policy.Require(policy.ReadUsage),
			Summary: "What models cost the account in a month, member by member",
			Doc:     "Spending is kept for good, numbers of calls for about three months.",
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

type usageIn struct {
	Month string `json:"month,omitempty" pattern:"^[0-9]{4}-(0[1-9]|1[0-2])$" says:"must have the form YYYY-MM" example:"2026-03" doc:"YYYY-MM in UTC; the current one unless given"`
}

// BillingUsage is the cost of models to an account in a month.
type BillingUsage struct {
	_        struct{}      `doc:"What models cost an account in a month." schema:"BillingUsage"`
	Period   string        `json:"period" example:"2026-03" doc:"the month, YYYY-MM in UTC"`
	Spent    string        `json:"spent_usd" format:"decimal" example:"112.40" doc:"decimal US dollars; of calls with a known price"`
	Reserved string        `json:"reserved_usd" format:"decimal" example:"1.20" doc:"decimal US dollars; set aside for calls under way"`
	Sessions *int64        `json:"sessions" example:"84" doc:"sessions that called a model; kept for about three months, null before"`
	Calls    *int64        `json:"calls" example:"1310" doc:"calls of models; kept for about three months, null before"`
	Unpriced *int64        `json:"unpriced_calls" example:"0" doc:"calls of models without a known price"`
	Days     []UsageDay    `json:"days" doc:"by the day in UTC, oldest first, those with a call only; kept for about three months, empty before"`
	Members  []MemberUsage `json:"members" doc:"by login; what nobody asked for is in the account's sum only"`
	Models   []UsagePart   `json:"models" doc:"by the model of the session, dearest first; kept for about three months, empty before"`
	Repos    []UsagePart   `json:"repos" doc:"by the repository of the work, dearest first; kept for about three months, empty before"`
	Kinds    []UsagePart   `json:"kinds" doc:"by the kind of session, dearest first; kept for about three months, empty before"`
}

// UsageDay is the cost of the calls of one day.
type UsageDay struct {
	_        struct{} `doc:"What the calls of one day cost." schema:"UsageDay"`
	Day      string   `json:"day" format:"date" example:"2026-03-10" doc:"YYYY-MM-DD, in UTC"`
	Spent    string   `json:"spent_usd" format:"decimal" example:"4.10" doc:"decimal US dollars; of calls with a known price"`
	Calls    int64    `json:"calls" example:"31" doc:"calls of models"`
	Unpriced int64    `json:"unpriced_calls" example:"0" doc:"calls without a known price"`
}

// UsagePart is the cost of the calls of one model, for one repository, or in sessions of one kind.
type UsagePart struct {
	_        struct{} `doc:"What the calls of one model, for one repository, or in sessions of one kind, cost in the month." schema:"UsagePart"`
	Name     *string  `json:"name" example:"claude-opus-4-5" doc:"the model, owner/name, or the kind; null: none was named"`
	Spent    string   `json:"spent_usd" format:"decimal" example:"41.10" doc:"decimal US dollars; of calls with a known price"`
	Sessions int64    `json:"sessions" example:"12" doc:"sessions that called a model"`
	Calls    int64    `json:"calls" example:"310" doc:"calls of models"`
	Unpriced int64    `json:"unpriced_calls" example:"0" doc:"calls without a known price"`
}

// MemberUsage is the cost of the work that a member asked for, and of all that
// followed from it.
type MemberUsage struct {
	_        struct{} `doc:"What the work that one member filed cost in the month." schema:"MemberUsage"`
	UserID   string   `json:"user_id" format:"uuid" doc:"id of the member"`
	Login    string   `json:"login" example:"ada" doc:"login of the member"`
	Spent    string   `json:"spent_usd" format:"decimal" example:"41.10" doc:"decimal US dollars"`
	Reserved string   `json:"reserved_usd" format:"decimal" example:"0.30" doc:"decimal US dollars, set aside for calls under way"`
	CapUSD   *float64 `json:"cap_usd" example:"50" doc:"the member's cap, in US dollars a month; null: none"`
}

func (s *Service) usage(ctx context.Context, in usageIn) (out BillingUsage, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		from := time.Date(tx.Now.UTC().Year(), tx.Now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
		if in.Month != "" {
			if from, err = time.Parse("2006-01", in.Month); err != nil {
				return fault.Field("month", "is not a month such as 2026-01")
			}
		}
		out = BillingUsage{Period: month(from), Members: []MemberUsage{}, Models: []UsagePart{}, Repos: []UsagePart{}, Kinds: []UsagePart{},
			Days: []UsageDay{}}
		b, _, err := selectBalance.Maybe(tx, selectBalanceArgs{
			AccountID: tx.Account, Scope: Account, Ref: tx.Account, Period: out.Period,
		})
		if err != nil {
			return err
		}
		out.Spent, out.Reserved = money.Dollars(b.Spent), money.Dollars(b.Reserved)
		if to := from.AddDate(0, 1, 0); tx.Now.Sub(from) < minutesTime {
			c, err := selectCalls.One(tx, tx.Account, from, to)
			if err != nil {
				return err
			}
			out.Sessions, out.Calls, out.Unpriced = &c.Sessions, &c.Calls, &c.Unpriced
			days, err := callsByDay.All(tx, tx.Account, from, to)
			if err != nil {
				return err
			}
			out.Days = append(out.Days, usageDays(days)...)
			for _, part := range []struct {
				sums db.Query[partRow]
				into *[]UsagePart
			}{{callsByModel, &out.Models}, {callsByRepo, &out.Repos}, {callsByKind, &out.Kinds}} {
				rows, err := part.sums.All(tx, tx.Account, from, to)
				if err != nil {
					return err
				}
				*part.into = append(*part.into, usageParts(rows)...)
			}
		}
		members, err := usageOfMembers(tx, out.Period)
		out.Members = append(out.Members, members...)
		return err
	})
	return out, err
}

func usageDays(rows []dayRow) []UsageDay {
	out := make([]UsageDay, len(rows))
	for i, r := range rows {
		day := time.Unix(r.Day*daySeconds, 0).UTC().Format(time.DateOnly)
		out[i] = UsageDay{Day: day, Spent: money.Dollars(r.Spent), Calls: r.Calls, Unpriced: r.Unpriced}
	}
	return out
}

func usageParts(rows []partRow) []UsagePart {
	out := make([]UsagePart, len(rows))
	for i, r := range rows {
		out[i] = UsagePart{Name: r.Name, Spent: money.Dollars(r.Spent), Sessions: r.Sessions, Calls: r.Calls, Unpriced: r.Unpriced}
	}
	return out
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
