package app

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// drain lets everything end: nothing waits for ever.
func (m *walk) drain() {
	m.check()
	for _, r := range m.repos {
		m.turnRepo(r, true)
	}
	m.do(func(tx *db.Tx) error {
		for _, b := range m.boxes {
			if _, err := setFleet.Exec(tx, setFleetArgs{ID: b, Slots: 5, Presence: "online", LastBeatAt: nil, Unfit: nil}); err != nil {
				return err
			}
		}
		return nil
	})
	m.disabled = map[string]bool{}
	for _, b := range m.boxes {
		m.drainOf(b, true)
	}
	m.check()
	m.wrapUp()
	n := m.nodes[0]
	for range 200 {
		m.elapse(time.Hour)
		m.scan(n)
		m.check()
		m.comeToRest()
		left := 0
		for _, taskID := range m.tasks {
			if m.believe[taskID].Terminal() {
				continue
			}
			left++
			if m.believe[taskID] == task.Held {
				m.must(n, 200, "POST", "/v1/tasks/"+taskID+"/redispatch", map[string]any{})
			}
		}
		m.check()
		if left == 0 {
			m.rest()
			return
		}
		m.obligeAll()
		for range 3 {
			m.claimAs(n, m.boxes[0], id.New())
		}
		m.check()
		for _, a := range m.attempts {
			if m.alive(a) {
				m.succeed(a)
			}
		}
	}
	_, status := m.call(n, "GET", "/v1/queue/status", nil)
	m.fail("not everything came to an end: %v", status)
}

// obligeAll does what is asked of people.
func (m *walk) obligeAll() {
	for i := range m.was.pulls {
		if pr := m.was.pull(m.was.pulls[i].ID); pr.open() && pr.Needs != "" && pr.AbandonedAt == nil {
			m.obligeOf(pr)
			m.check()
		}
	}
}

// succeed has an attempt end as whoever made the task wishes.
func (m *walk) succeed(a *attempt) {
	f := protocol.Finished{State: protocol.Succeeded, Report: "done"}
	switch a.start.Kind {
	case task.KindCI:
		f.ExitCode = new(int)
	case task.KindBabysit:
		r := m.repoOf(a)
		f.Base = m.forge.at(r, a.start.Branch)
		f.Tip = m.forge.push(r, a.start.Branch, f.Base)
	}
	m.end(a, f)
}

// wrapUp decides whatever waits for a person.
func (m *walk) wrapUp() {
	n := m.nodes[0]
	free := map[string]any{"usd": nil}
	m.must(n, 200, "PUT", "/v1/billing/spend-cap", free)
	m.owe("billing.spend_cap_set", m.account)
	for _, planID := range m.plans {
		if m.was.plans[planID].Status == plan.Held {
			m.must(n, 200, "POST", "/v1/plans/"+planID+"/cancel", nil)
			m.owe("plan.cancelled", planID)
		}
	}
	for _, b := range m.was.asked {
		if b.State == "open" && m.read().blockers[b.ID].State == "open" {
			m.must(n, 200, "POST", "/v1/blockers/"+b.ID+"/withdraw", nil)
			m.owe("blocker.withdrawn", b.ID)
		}
	}
	m.check()
}

// rest is what must be left when all has come to an end: nothing that waits,
// and no money that is set aside.
func (m *walk) rest() {
	m.see(func(tx *db.Tx) error {
		astray, err := m.nodes[0].due.Astray(tx)
		if len(astray) > 0 {
			m.fail("what is due and its rows: %q", astray)
		}
		return err
	})
	for _, n := range m.nodes {
		m.close(n)
	}
	m.elapse(5 * time.Minute)
	for _, n := range m.nodes {
		m.sweepOf(n)
	}
	m.check()
	var spent int64
	for _, b := range m.was.meters {
		if b.Reserved != 0 {
			m.fail("all is over, and %+v", b)
		}
		if b.Scope == "account" {
			spent += b.Spent
		}
	}
	if spent < m.paid || spent > m.paid+m.written {
		m.fail("%d were spent, %d paid and %d given up", spent, m.paid, m.written)
	}
	for _, p := range m.was.plans {
		if p.Status == plan.Running || p.Status == plan.Drafting || p.Status == plan.Held {
			m.fail("all is over, and %+v", p)
		}
	}
	m.whole()
}
