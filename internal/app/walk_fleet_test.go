package app

import (
	"context"
	"slices"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// seat changes how many runs the account may have at once: those that it pays
// for, or for a day those that it was given.
func (m *walk) seat() {
	m.fleets++
	n := m.on()
	if rapid.Bool().Draw(m.r, "given") {
		m.given = append(m.given, m.now().AddDate(0, 0, 1))
		given := m.operate(n, 201, "POST", "/v1/admin/grants",
			map[string]any{"account_id": m.account, "ai_devs": 1, "reason": "For once.", "expires_in_days": 1})
		m.owe("grant.issued", given["id"].(string))
		return
	}
	m.check() // something may have been claimed since, on the seats of before
	m.seats = rapid.IntRange(1, 4).Draw(m.r, "seats")
	m.operate(n, 200, "PUT", "/v1/admin/accounts/"+m.account+"/seats", map[string]any{"seats": m.seats, "confirm": true})
	m.owe("account.set_seats", m.account)
}

// operate makes a request as the operator, that has to go as said.
func (m *walk) operate(n *node, status int, method, path string, body any) map[string]any {
	got, out := m.callAs(n, m.operator, method, path, body)
	if got != status {
		m.fail("%s %s answers %d, want %d: %v", method, path, got, status, out)
	}
	return out
}

// drainBox has a box give its work back, or takes that back. One that is not there
// has its work taken away.
func (m *walk) drainBox() {
	m.drainOf(one(m, m.boxes[:], "box"), rapid.Bool().Draw(m.r, "resume"))
}

func (m *walk) drainOf(box string, resume bool) {
	was := m.read() // something may have been claimed since the last check
	before := was.boxes[box]
	held := map[string]bool{}
	for id, r := range was.runs {
		held[id] = r.EndedAt == nil && r.BoxID == box
	}
	out := m.must(m.on(), 200, "POST", "/v1/runners/"+box+"/drain", map[string]any{"resume": resume})
	m.fleets++
	if resume == (before == "enrolled") {
		return
	}
	m.owe(map[bool]string{true: "box.resumed", false: "box.drained"}[resume], box)
	ended, now := 0.0, m.read()
	for id, r := range now.runs {
		if held[id] && r.EndedAt != nil {
			ended++
		}
	}
	if out["requeued"] != ended || out["state"] != now.boxes[box] || resume && ended > 0 {
		m.fail("drain of box %s answers %v, and %v runs of it ended", box, out, ended)
	}
	m.seen["drained "+out["state"].(string)]++
}

// checkSeats wants no run to begin beyond what the account has seats for. Runs
// that go on are left alone when there are fewer.
func (m *walk) checkSeats(was, now *state) {
	seated := func(s *state) (n int) {
		for _, t := range s.tasks {
			if t.Status.InFlight() && t.Kind != task.KindCI {
				n++
			}
		}
		return n
	}
	seats := m.seats
	for _, until := range m.given {
		if m.now().Before(until) {
			seats++
		}
	}
	if n := seated(now); n > seats && n > seated(was) {
		m.fail("%d runs go on, on %d seats", n, seats)
	}
}

// restartBox has a box forget all its runs while one of them waits for a person.
// The next run of that task asks for the same once more.
func (m *walk) restartBox() {
	a := m.parkedRun()
	m.elapse(10 * time.Second) // a claim's answer is not under way any more
	if _, err := m.on().parts.run.Verdicts(context.Background(), a.box, nil); err != nil {
		m.fail("hello: %v", err)
	}
	m.check()
	if m.alive(a) {
		m.fail("box %s knows of no run, and %s goes on", a.box, a.start.Run)
	}
	m.claimBoth()
	m.check()
	i := slices.IndexFunc(m.attempts, func(b *attempt) bool { return b.start.Task == a.start.Task && m.alive(b) })
	if i < 0 {
		return // others were before it, or it has ended
	}
	batch := []protocol.Event{said(protocol.EventStarted, protocol.Started{Agent: "builtin"})}
	for _, e := range a.sent {
		if e.Kind == protocol.EventBlocker {
			batch = append(batch, protocol.Event{Kind: e.Kind, T: e.T, Data: e.Data})
		}
	}
	m.say(m.attempts[i], append(batch, said(protocol.EventParked, protocol.Parked{WindowMS: 60_000})), 0)
	m.seen["asked for again by the next run"]++
}

// parkedRun is an attempt that waits for a person; if none does, one is told to.
func (m *walk) parkedRun() *attempt {
	parked := func() (found []*attempt) {
		for _, a := range m.attempts {
			if m.alive(a) && m.was.runs[a.start.Run].State == run.Parked {
				found = append(found, a)
			}
		}
		return found
	}
	if len(parked()) == 0 {
		a := m.pickLive()
		m.say(a, append(m.declaration(a), said(protocol.EventParked, protocol.Parked{WindowMS: 60_000})), 0)
		m.check()
	}
	all := parked()
	if len(all) == 0 {
		panic(idle{})
	}
	return one(m, all, "parked")
}
