package app

import (
	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// declare has a run ask for what only a person can give, once more under the
// same name perhaps.
func (m *walk) declare() {
	a := m.pickLive()
	batch := m.declaration(a)
	if rapid.Bool().Draw(m.r, "parks") {
		batch = append(batch, said(protocol.EventParked, protocol.Parked{WindowMS: 60_000}))
	}
	m.say(a, batch, 0)
}

// declaration is what an attempt says that asks for something.
func (m *walk) declaration(a *attempt) []protocol.Event {
	b := protocol.BlockerDeclared{ID: rapid.SampledFrom([]string{"one", "two", "three"}).Draw(m.r, "name"), Kind: "decision",
		Question: "How?"}
	if rapid.Bool().Draw(m.r, "form") {
		b.Kind = "missing_credential"
		for _, f := range []protocol.BlockerField{{Name: "TOKEN", Kind: "env_secret"},
			{Name: "ADDRESS", Kind: "service_url", Environment: "test"}, {Name: "docs", Kind: "mcp_server"}} {
			if rapid.Bool().Draw(m.r, f.Name) {
				b.Fields = append(b.Fields, f)
			}
		}
	}
	var batch []protocol.Event
	if m.was.tasks[a.start.Task].Status == task.Claimed && rapid.IntRange(0, 9).Draw(m.r, "before it starts") != 7 {
		batch = append(batch, said(protocol.EventStarted, protocol.Started{Agent: "builtin"}))
	}
	return append(batch, said(protocol.EventBlocker, b))
}

// park has an agent wait, go on, or stop waiting.
func (m *walk) park() {
	m.say(m.pickLive(), []protocol.Event{rapid.SampledFrom([]protocol.Event{
		said(protocol.EventParked, protocol.Parked{WindowMS: 60_000}), said(protocol.EventResumed, nil),
		said(protocol.EventFinished, protocol.Finished{State: protocol.Blocked}),
		said(protocol.EventFinished, protocol.Finished{State: protocol.Blocked, WIP: true, Tip: "w"}),
	}).Draw(m.r, "event")}, 0)
}

// pickBlocker is a blocker that is open, as a rule.
func (m *walk) pickBlocker() blockerRow {
	var all, open []blockerRow
	for _, b := range m.was.asked {
		if all = append(all, b); b.State == "open" {
			open = append(open, b)
		}
	}
	if len(all) == 0 {
		panic(idle{})
	}
	if len(open) > 0 && rapid.IntRange(0, 9).Draw(m.r, "closed") != 7 {
		all = open
	}
	return one(m, all, "blocker")
}

// answer answers a blocker, on both nodes at once.
func (m *walk) answer() {
	b := m.pickBlocker()
	statuses, outs := m.both("POST", "/v1/blockers/"+b.ID+"/answer", map[string]any{"answer": "Like this."})
	closed := 0
	for i, status := range statuses {
		switch {
		case status == 200:
			closed++
			m.owe("blocker.answered", b.ID)
			m.resumed(b, outs[i])
		case status != 409:
			m.fail("answer to %+v: %d %v", b, status, outs[i])
		}
	}
	if (closed == 1) != (b.State == "open") || closed > 1 {
		m.fail("%+v was answered %d times", b, closed)
	}
}

// resumed holds what the closing of a blocker says it did against what it did.
func (m *walk) resumed(b blockerRow, out map[string]any) {
	is, was := m.believe[b.TaskID], m.was.tasks[b.TaskID]
	ok := false
	switch out["kind"] {
	case "released":
		ok = was.Status == task.Held && is == task.Pending
	case "woken":
		ok = is.InFlight() // the run that asked, or the one that does the work now
	case "filed":
		ok = is.Terminal() || is.Shipped()
		askID := out["ask_id"].(string)
		m.owe("ask.filed", askID)
		if was.Kind == task.KindCI { // the program of a check begins no work
			m.owe("ask.escalated", askID)
			m.see(func(tx *db.Tx) error {
				raised, err := raisedOf.One(tx, askID)
				m.owe("escalation.raised", raised)
				return err
			})
		}
	case "recorded": // a box that waits for work may have claimed a task of the queue since the last check
		ok = !is.Terminal() && (is == was.Status || was.Status == task.Pending && is == task.Claimed)
	}
	m.seen["answer "+out["kind"].(string)]++
	if !ok {
		m.fail("closing %+v of %+v says %v, and the task is %s", b, was, out, is)
	}
}

var raisedOf = db.Q[string](`SELECT id FROM escalations WHERE ask_id = $1`)

// submit fills in one field of a form.
func (m *walk) submit() {
	b := m.pickBlocker()
	n := m.on()
	spec := m.must(n, 200, "GET", "/v1/blockers/"+b.ID+"/spec", nil)
	fields := spec["fields"].([]any)
	if len(fields) == 0 {
		panic(idle{})
	}
	open := 0
	for _, f := range fields {
		if !f.(map[string]any)["landed"].(bool) {
			open++
		}
	}
	f := one(m, fields, "field").(map[string]any)
	value := map[string]any{"TOKEN": "t0k3n", "ADDRESS": "https://example.com/", "mcp:docs": map[string]any{
		"url": "https://docs.example.com/mcp", "transport": "http", "token": "t0k3n-of-docs"}}[f["name"].(string)]
	status, out := m.call(n, "POST", "/v1/blockers/"+b.ID+"/submit", map[string]any{"fields": map[string]any{f["name"].(string): value}})
	switch {
	case status == 409 && (b.State != "open" || f["landed"] == true):
	case status != 200 || b.State != "open" || f["landed"] == true:
		m.fail("submit to %+v, %v: %d %v", b, f, status, out)
	case open == 1:
		m.owe("blocker.submitted", b.ID)
		m.resumed(b, out)
	case out["state"] == "open":
		m.owe("blocker.fields_landed", b.ID)
	default:
		m.fail("one of %d fields was submitted: %v", open, out)
	}
}

func (m *walk) withdraw() {
	b := m.pickBlocker()
	status, out := m.call(m.on(), "POST", "/v1/blockers/"+b.ID+"/withdraw", nil)
	if (status == 200) != (b.State == "open") || status != 200 && status != 404 {
		m.fail("withdrawing %+v: %d %v", b, status, out)
	}
	if status == 200 {
		m.owe("blocker.withdrawn", b.ID)
		if out["kind"] != "recorded" {
			m.resumed(b, out)
		}
	}
}
