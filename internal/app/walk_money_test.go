package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/money"
)

// reserve has an agent ask for a call to a model.
func (m *walk) reserve() { m.reserveFor(m.on(), m.pickModel()) }

// pickModel is an attempt that has a model token.
func (m *walk) pickModel() *attempt {
	a := m.pickLive()
	if a.start.ModelToken == "" {
		panic(idle{})
	}
	return a
}

// reserveBoth has two agents ask at the same moment, on a node each.
func (m *walk) reserveBoth() {
	a, b := m.pickModel(), m.pickModel()
	var wg sync.WaitGroup
	quotes := [2]llm.Quote{m.quote(), m.quote()}
	var grants [2]llm.Grant
	var errs, refused [2]error
	var got [2]int64
	of := [2]*attempt{a, b}
	for i, a := range of {
		grants[i], errs[i] = m.authorize(m.nodes[i], a)
	}
	for i := range 2 {
		if errs[i] == nil {
			wg.Go(func() {
				got[i], refused[i] = m.ask(m.nodes[i], of[i], grants[i], quotes[i])
			})
		}
	}
	wg.Wait()
	for i := range 2 {
		if errs[i] == nil {
			m.reserved(m.nodes[i], of[i], grants[i], quotes[i], got[i], refused[i])
		}
	}
}

func (m *walk) quote() llm.Quote {
	q := llm.Quote{Priced: true, Most: rapid.SampledFrom([]int64{0, 1, 50_000, 200_000, 400_000}).Draw(m.r, "most")}
	q.Least = q.Most / rapid.Int64Range(1, 4).Draw(m.r, "least")
	return q
}

func (m *walk) reserveFor(n *node, a *attempt) {
	q := m.quote()
	grant, err := m.authorize(n, a)
	if err != nil {
		return
	}
	got, err := m.ask(n, a, grant, q)
	m.reserved(n, a, grant, q, got, err)
}

// ask sets money aside for a call. One that there is no room for beside other
// calls would wait until those are settled; here the agent gives up soon.
func (m *walk) ask(n *node, a *attempt, grant llm.Grant, q llm.Quote) (int64, error) {
	ctx := context.Background()
	if len(m.nodes[0].calls)+len(m.nodes[1].calls) > 0 {
		soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		ctx = soon
	}
	got, err := n.parts.gateway.Reserve(ctx, grant, grant.Routes[0], q)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // however the database puts it
	}
	return got, err
}

// authorize shows a model token. One that is dead is worth nothing, but where
// it was asked for a moment ago.
func (m *walk) authorize(n *node, a *attempt) (llm.Grant, error) {
	i := slices.Index(m.nodes[:], n)
	grant, err := n.parts.gateway.Authorize(context.Background(), a.start.ModelToken, llm.Messages, "")
	switch alive := m.alive(a); {
	case err == nil && alive:
		a.allowed[i] = m.now()
	case err == nil && m.now().Sub(a.allowed[i]) >= time.Second:
		m.fail("the model token of an ended attempt works")
	case err != nil && (alive || !fault.IsKind(err, fault.Unauthenticated)) && !m.spent(a):
		m.fail("authorize: %v", err)
	}
	return grant, err
}

// spent tells whether the tokens of an attempt have run out by themselves.
func (m *walk) spent(a *attempt) bool {
	return m.now().Sub(m.was.runs[a.start.Run].CreatedAt) > time.Duration(a.start.TimeoutMS)*time.Millisecond
}

func (m *walk) reserved(n *node, a *attempt, grant llm.Grant, q llm.Quote, got int64, err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		m.seen["call waits"]++
	case fault.IsKind(err, fault.PaymentRequired):
		m.seen["call refused"]++
	case fault.IsKind(err, fault.Unauthenticated) && !m.alive(a):
	case err != nil:
		m.fail("reserve: %v", err)
	case got < q.Least || got > q.Most:
		m.fail("reserve: %d of %+v", got, q)
	default:
		n.calls = append(n.calls, modelCall{a, grant, got})
		m.seen["call let through"]++
	}
}

// settle stores what some calls of a node cost.
func (m *walk) settle() {
	n := m.on()
	if len(n.calls) == 0 {
		panic(idle{})
	}
	k := rapid.IntRange(1, len(n.calls)).Draw(m.r, "calls")
	m.record(n, n.calls[:k], func(c modelCall) *int64 {
		cost := c.reserved * rapid.Int64Range(0, 4).Draw(m.r, "quarters") / 4
		if rapid.IntRange(0, 9).Draw(m.r, "priced") == 7 {
			return nil
		}
		return &cost
	})
	n.calls = slices.Delete(n.calls, 0, k)
	n.parts.gateway.Close() // stores them now
}

// record tells the account of calls: what they cost, or all that was set aside.
func (m *walk) record(n *node, calls []modelCall, cost func(modelCall) *int64) {
	for _, c := range calls {
		u := llm.Usage{API: llm.Messages, Model: "m", Reserved: c.reserved, CostMicros: &c.reserved, Status: 200}
		if cost != nil {
			u.CostMicros = cost(c)
		}
		if u.CostMicros != nil {
			m.paid += *u.CostMicros
		}
		n.parts.gateway.Record(context.Background(), c.grant, c.grant.Routes[0], u)
	}
}

// cap sets one of the limits that people set, or takes it away.
func (m *walk) cap() {
	usd := map[string]any{"usd": rapid.SampledFrom([]any{nil, 0.0, 0.3, 0.7, 1.5, 3.0, 6.0}).Draw(m.r, "usd")}
	kinds := []string{"account", "member", "task"}
	if len(m.plans) > 0 {
		kinds = append(kinds, "plan", "plan")
	}
	n := m.on()
	switch rapid.SampledFrom(kinds).Draw(m.r, "of") {
	case "account":
		m.must(n, 200, "PUT", "/v1/billing/spend-cap", usd)
		m.owe("billing.spend_cap_set", m.account)
	case "member":
		m.must(n, 200, "PUT", "/v1/billing/spend-cap/members/"+m.user, usd)
		m.owe("billing.member_cap_set", m.user)
	case "task":
		taskID := m.any()
		if m.believe[taskID].Terminal() && m.believe[taskID] != task.Failed {
			m.must(n, 409, "PUT", "/v1/tasks/"+taskID+"/budget", usd)
			return
		}
		m.must(n, 200, "PUT", "/v1/tasks/"+taskID+"/budget", usd)
		m.owe("task.budget_set", taskID)
	default:
		planID := m.anyPlan()
		m.must(n, 200, "PUT", "/v1/plans/"+planID+"/budget", usd)
		m.owe("plan.budget_set", planID)
	}
}

// sweep is a turn of a node's loop over the budgets.
func (m *walk) sweep() {
	m.elapse(rapid.SampledFrom([]time.Duration{0, 31 * time.Second, 3 * time.Minute}).Draw(m.r, "after"))
	m.sweepOf(m.on())
}

func (m *walk) sweepOf(n *node) {
	for _, r := range m.read().reservations {
		if r.Node != n.parts.budget.Node && !r.WrittenOff && r.ExpiresAt.Before(m.now()) {
			m.owe("budget.unsettled", r.SessionID)
			m.written += max(r.Amount-r.Used, 0)
		}
	}
	if err := n.parts.budget.Sweep(context.Background()); err != nil {
		m.fail("sweep: %v", err)
	}
	for _, t := range m.read().tasks {
		if t.Status == task.Held && *t.FailureKind == task.BudgetExhausted && t.StopMicros == nil {
			m.fail("no limit stops the task %s any more, and it is held", t.ID)
		}
	}
}

// nearlySpent holds a warning against what is spent: four fifths of a limit or more.
func (m *walk) nearlySpent(l link) {
	var d budget.NearlySpent
	err := json.Unmarshal([]byte(l.Data), &d)
	spent, bad := strconv.ParseFloat(d.Spent, 64)
	if err != nil || bad != nil || d.USD <= 0 || spent < d.USD*.8 {
		m.fail("a warning of a limit that has room: %+v, %v, %v", l, err, bad)
	}
}

// limit is what a meter may not exceed, nil for nothing.
func (m *walk) limit(s *state, scope, ref string) *int64 {
	for _, l := range s.limits {
		if l.Scope == scope && l.Ref == ref {
			return &l.Micros
		}
	}
	ofRepo := func(repoID string, usd map[int]float64) *int64 {
		if v, ok := usd[slices.Index(m.repos, repoID)]; ok {
			return money.Micros(&v)
		}
		return nil
	}
	switch scope {
	case "task", "work":
		whole := ofRepo(s.tasks[ref].RepoID, map[int]float64{0: 2})
		if t := s.tasks[ref]; t.BudgetMicros != nil {
			whole = t.BudgetMicros
		}
		if scope == "work" && whole != nil { // a quarter is kept for reviews and repairs
			own := *whole - *whole/4
			whole = &own
		}
		return whole
	case "run":
		return ofRepo(s.tasks[s.runs[ref].TaskID].RepoID, map[int]float64{0: 1, 2: 0.5})
	}
	return nil
}

// checkMoney wants no meter to exceed its limit, but where the limit was
// lowered, and all that is set aside to be somebody's.
func (m *walk) checkMoney(was, now *state) {
	type meter struct{ scope, ref, period string }
	before, aside := map[meter]int64{}, map[meter]int64{}
	for _, b := range was.meters {
		before[meter{b.Scope, b.Ref, b.Period}] = b.Reserved + b.Spent
	}
	for _, r := range now.reservations {
		if r.Used > r.Amount {
			m.fail("a reservation of %d of which %d were used", r.Amount, r.Used)
		}
		for _, x := range r.Meters.V {
			if r.WrittenOff {
				continue // spent, as far as we know
			}
			aside[meter{x.S, x.R, x.P}] += r.Amount - r.Used
		}
	}
	for _, b := range now.meters {
		at := meter{b.Scope, b.Ref, b.Period}
		limit := m.limit(now, b.Scope, b.Ref)
		if total := b.Reserved + b.Spent; limit != nil && total > *limit && total > before[at] {
			m.fail("%+v exceeds its limit of %d, and was at %d", b, *limit, before[at])
		}
		if b.Reserved != aside[at] || b.Spent < 0 {
			m.fail("%+v, and nodes hold %d for it", b, aside[at])
		}
		delete(aside, at)
	}
	for at := range aside {
		m.fail("nodes hold money for %v, which does not know of it", at)
	}
}
