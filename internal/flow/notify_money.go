package flow

import (
	"cmp"
	"fmt"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/payment"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/event"
	"yardmaster/internal/money"
	"yardmaster/internal/policy"
)

const (
	nounBudget  = "budget"
	nounPayment = "payment"
)

// everyRule lists the rules of all that people are told of.
func everyRule() []rule { return slices.Concat(rules, moneyRules, pageRules, closureRules) }

// moneyRules are those about limits and payment.
var moneyRules = []rule{
	{[]event.Any{budget.NearlySpentEvent}, Notify.nearlySpent},
	{[]event.Any{payment.ChangedEvent}, Notify.paymentFailed},
	{[]event.Any{payment.GraceEndsEvent}, Notify.graceEnds},
}

// nearlySpent: owners and admins hear that four fifths of a limit are spent, and the member whose
// limit it is.
func (n Notify) nearlySpent(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	d, err := budget.NearlySpentEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	whose, err := limited(tx, d.Scope, e.Object)
	if err != nil {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Spending, Noun: nounBudget, Subject: e.Object, Path: "/ui/usage",
		Title: fmt.Sprintf("Four fifths of %s are spent: %s of %s US dollars", whose, d.Spent, money.Dollars(*money.Micros(&d.USD))),
		Text:  "Work that it has no room for is held. Raise it, or leave it so.",
	}
	if out.To, err = deciders(tx, nil, policy.ReadAccount); err != nil {
		return out, false, err
	}
	if d.Scope == budget.Member && !slices.Contains(out.To, e.Object) {
		out.To = append(out.To, e.Object)
	}
	return out, true, nil
}

// limited is whose limit one is, by the id of that.
func limited(tx *db.Tx, scope, ref string) (string, error) {
	switch scope {
	case budget.Member:
		u, ok, err := people.UserByID(tx, ref)
		if ok {
			return "the budget of " + u.Login, err
		}
		return "a member's budget", err
	case budget.Repo:
		name, err := nameOf(tx, &ref)
		return "the budget of " + cmp.Or(name, "a repository"), err
	case budget.Key:
		all, err := modelkey.Labels(tx)
		if all[ref] == "" {
			return "a key's budget", err
		}
		return "the budget of the key “" + all[ref] + "”", err
	case budget.Plan:
		p, ok, err := plan.BriefOf(tx, ref)
		if ok {
			return "the budget of the plan “" + p.Title + "”", err
		}
		return "a plan's budget", err
	}
	return "the account's budget", nil
}

// paymentFailed: owners and admins hear that a card has failed, once: not of each of its tries.
func (n Notify) paymentFailed(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	d, err := payment.ChangedEvent.Decode(e)
	if err != nil || d.FailedAt == nil || d.FailedAt.Before(e.At) || !d.InForce {
		return out, false, err
	}
	return payNotice(tx, e, "A payment has failed", "Nothing changes for now. Look after the card before what is paid for ends.")
}

// graceEnds: and that this is soon over.
func (n Notify) graceEnds(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	d, err := payment.GraceEndsEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	return payNotice(tx, e, "What is paid for ends on "+d.EndsAt.UTC().Format("2 January 2006")+": a payment has failed",
		"Look after the card before then. What runs is not ended.")
}

func payNotice(tx *db.Tx, e event.Recorded, title, text string) (out notification.Notice, ok bool, err error) {
	out = notification.Notice{
		Kind: notification.Spending, Noun: nounPayment, Subject: e.Object, Path: "/ui/settings/payment", Title: title, Text: text,
	}
	out.To, err = deciders(tx, nil, policy.ReadAccount)
	return out, true, err
}
