package gateway

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

// payer is what a call over a route counts for: its session, or the gift by which the route's
// key is lent. Then it counts for the budgets of the account that has lent the key, and for none
// of the session's.
func (o owner) payer(over llm.Route) owner {
	if over.Lent.Gift == "" {
		return o
	}
	return owner{session: over.Lent.Gift, account: over.Lent.Account}
}

// exhausted makes of the refusal of a gift's budget one that says nothing of the budgets of who
// has lent the key, and that ends no run for a budget of its own.
func exhausted(over llm.Route, err error) error {
	if over.Lent.Gift == "" || err == nil {
		return err
	}
	if fault.IsKind(err, fault.PaymentRequired) || fault.IsKind(err, fault.Unauthenticated) {
		return fault.New(fault.PaymentRequired, llm.SlugQuota,
			"What was given for this repository does not pay for another call of this model.").Because(err)
	}
	return err
}

// sessionCall is the call in the record of its session, for which one over a lent key costs nothing.
func (r record) sessionCall() session.Call {
	u := r.usage
	c := session.Call{
		SessionID: r.session, Provider: string(r.over.Provider), Model: u.Model,
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheTokens: u.CacheReadTokens + u.Written(),
		CostMicros: u.CostMicros,
	}
	if r.over.Lent.Gift != "" {
		c.CostMicros = new(int64)
	}
	return c
}

// budgetCalls is the call as the budgets of its payer count it, and that of its key if it has one.
func (r record) budgetCalls() []budget.Call {
	p := r.payer(r.over)
	c := budget.Call{
		Session: p.session, Account: p.account, Reserved: r.usage.Reserved, Cost: r.usage.CostMicros,
		Key: r.over.ID, Provider: string(r.over.Provider), Model: r.usage.Model, Capped: r.over.Capped,
	}
	if !c.Capped {
		return []budget.Call{c}
	}
	k := c
	k.Session, k.OfKey = k.Key, true
	return []budget.Call{c, k}
}

// noteUse counts a call over a lent key for its gift.
func (r record) noteUse(tx *db.Tx) error {
	if r.over.Lent.Gift == "" {
		return nil
	}
	u := donation.Use{Gift: r.over.Lent.Gift, AccountID: r.account, RepoID: r.repo}
	if r.usage.CostMicros == nil {
		u.Unpriced = 1
	} else {
		u.Micros = *r.usage.CostMicros
	}
	if err := donation.NoteUse(tx, u); err != nil {
		return err
	}
	return budget.NoteGiven(tx, budget.GivenCall{
		Account: r.account, Session: r.session, Provider: string(r.over.Provider), Model: r.usage.Model, Micros: r.usage.CostMicros,
	})
}

// noteKey notes what the call showed about its key, which is that of the account that pays.
func (r record) noteKey(tx *db.Tx) error {
	return modelkey.Note(tx, r.payer(r.over).account, r.over, r.usage.Fault)
}
