package run

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

var (
	allRuns   = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE account_id = $1 ORDER BY id`)
	allEvents = db.Q[storedEvent](`SELECT seq, t, mono, kind, data FROM run_events WHERE run_id = $1 ORDER BY seq`)
)

// attempt is what a box believes of an attempt it was given.
type attempt struct {
	box    string
	claim  string
	start  *protocol.Start
	sent   []protocol.Event // what was accepted, by seq
	stale  []string         // git tokens that were replaced
	frozen *Row             // the row when it had ended
}

// model is two boxes and the tasks they work on, under random orders: events
// doubled and out of order, leases lost, people interfering.
type model struct {
	*fixture
	r        *rapid.T
	tasks    []string
	attempts []*attempt
	final    map[string]task.Status
}

func (m *model) fail(format string, a ...any) { m.r.Fatalf(format, a...) }

func (m *model) do(fn func(tx *db.Tx) error) {
	if err := m.DB.Write(m.ctx(), fn); err != nil {
		m.fail("%v", err)
	}
}

// see is do without a commit.
func (m *model) see(fn func(tx *db.Tx) error) {
	if err := m.DB.Read(m.ctx(), fn); err != nil {
		m.fail("%v", err)
	}
}

func (m *model) pick() *attempt {
	if len(m.attempts) == 0 {
		m.r.Skip("no attempts")
	}
	return rapid.SampledFrom(m.attempts).Draw(m.r, "attempt")
}

func (m *model) create(*rapid.T) {
	if len(m.tasks) < 6 {
		m.tasks = append(m.tasks, m.fixture.create(rapid.SampledFrom([]string{task.KindWork, task.KindScout}).Draw(m.r, "kind")))
	}
}

func (m *model) claimOne(*rapid.T) {
	m.claimAs(rapid.SampledFrom(m.boxes[:]).Draw(m.r, "box"), id.New())
}

// claimAgain repeats a claim whose answer got lost.
func (m *model) claimAgain(*rapid.T) {
	a := m.pick()
	m.claimAs(a.box, a.claim)
}

func (m *model) claimAs(box, claim string) {
	reply, err := m.Claim(context.Background(), box, protocol.Claim{ID: claim, Free: 1})
	if err != nil {
		m.fail("claim: %v", err)
	}
	i := slices.IndexFunc(m.attempts, func(a *attempt) bool { return a.box == box && a.claim == claim })
	switch {
	case reply.Run == nil:
	case i < 0:
		m.attempts = append(m.attempts, &attempt{box: box, claim: claim, start: reply.Run})
	case m.attempts[i].start.Run != reply.Run.Run:
		m.fail("a repeated claim got another run")
	default:
		m.attempts[i].stale = append(m.attempts[i].stale, m.attempts[i].start.GitToken)
		m.attempts[i].start = reply.Run
	}
}

// speak sends events that begin somewhere around where they should.
func (m *model) speak(*rapid.T) {
	a := m.pick()
	var batch []protocol.Event
	for range rapid.IntRange(1, 4).Draw(m.r, "events") {
		batch = append(batch, rapid.SampledFrom([]protocol.Event{
			ev("agent.update", map[string]int{"n": len(a.sent)}), ev(protocol.EventStarted, protocol.Started{Agent: "claude"}),
			ev(protocol.EventPushed, protocol.Pushed{SHA: "wip", WIP: true}), ev(protocol.EventAccepted, nil),
		}).Draw(m.r, "event"))
	}
	m.say(a, batch, rapid.Int64Range(-2, 1).Draw(m.r, "offset"))
}

func (m *model) finish(*rapid.T) {
	a := m.pick()
	f := rapid.SampledFrom([]protocol.Finished{
		{State: protocol.Succeeded, Report: "done"}, {State: protocol.Failed, Kind: task.AgentError}, {State: protocol.Halted, WIP: true, Tip: "w"},
		{State: protocol.Failed, Kind: task.Blocked}, {State: protocol.Failed, Kind: task.PolicyRefused},
	}).Draw(m.r, "end")
	m.say(a, []protocol.Event{finished(f)}, 0)
}

// say sends a batch at an offset from what comes next: events before that are
// repeated as they were, a gap has to be refused.
func (m *model) say(a *attempt, batch []protocol.Event, offset int64) {
	next := int64(len(a.sent)) + 1
	first := max(next+offset, 1)
	if first < next {
		batch = append(slices.Clone(a.sent[first-1:]), batch...)
	}
	for i := range batch {
		batch[i].Seq = first + int64(i)
	}
	alive := m.row(a).EndedAt == nil
	before := m.snapshot()
	err := m.Ingest(context.Background(), a.box, protocol.Envelope{V: 1, Run: a.start.Run, Attempt: a.start.Attempt, Events: batch})
	switch {
	case !alive && err != nil:
		m.fail("what an ended attempt says is dropped, not refused: %v", err)
	case !alive:
		if after := m.snapshot(); after != before {
			m.fail("an ended attempt changed something:\n%s\n%s", before, after)
		}
	case first > next && err == nil:
		m.fail("a gap was taken")
	case first <= next && err != nil:
		m.fail("ingest: %v", err)
	case first <= next:
		a.sent = append(a.sent, batch[next-first:]...)
	}
}

func (m *model) row(a *attempt) (r Row) {
	m.see(func(tx *db.Tx) (err error) { r, err = selectOfBox.One(tx, a.box, a.start.Run); return err })
	return r
}

// snapshot is all that the account's tasks and runs are.
func (m *model) snapshot() (s string) {
	m.see(func(tx *db.Tx) error {
		s = ""
		runs, err := allRuns.All(tx, m.account)
		for _, r := range runs {
			s += fmt.Sprintln(r.ID, r.State, r.CommittedSeq, r.EndedAt, r.ProgressAt)
		}
		for _, taskID := range m.tasks {
			t, _, err := task.Get(tx, m.account, taskID)
			if err != nil {
				return err
			}
			s += fmt.Sprintln(t.ID, t.Status, t.Attempt, t.Charged, t.Uncharged, t.UpdatedAt)
		}
		return err
	})
	return s
}

// lose lets leases run out, but for one that is renewed.
func (m *model) lose(*rapid.T) {
	a := m.pick()
	m.pass(60 * time.Second)
	if _, err := m.Renew(context.Background(), a.box, protocol.Renew{Run: a.start.Run, Attempt: a.start.Attempt}); err != nil {
		m.fail("renew: %v", err)
	}
	m.pass(20 * time.Second)
	if err := m.Scan(context.Background()); err != nil {
		m.fail("scan: %v", err)
	}
}

func (m *model) hello(*rapid.T) {
	box := rapid.SampledFrom(m.boxes[:]).Draw(m.r, "box")
	var refs []protocol.RunRef
	for _, a := range m.attempts {
		if a.box == box && rapid.Bool().Draw(m.r, "remembers") {
			refs = append(refs, protocol.RunRef{Run: a.start.Run, Attempt: a.start.Attempt, Seq: int64(len(a.sent))})
		}
	}
	m.pass(10 * time.Second)
	verdicts, err := m.Verdicts(context.Background(), box, refs)
	if err != nil {
		m.fail("hello: %v", err)
	}
	for i, v := range verdicts {
		a := m.attempts[slices.IndexFunc(m.attempts, func(a *attempt) bool { return a.start.Run == refs[i].Run })]
		if goesOn := v.Do == protocol.DoContinue; goesOn != (m.row(a).EndedAt == nil) || goesOn && v.FromSeq != int64(len(a.sent))+1 {
			m.fail("verdict %+v of a run at %d", v, len(a.sent))
		}
	}
}

// interfere is a person who acts on a task, and may be refused.
func (m *model) interfere(*rapid.T) {
	if len(m.tasks) == 0 {
		m.r.Skip("no tasks")
	}
	taskID := rapid.SampledFrom(m.tasks).Draw(m.r, "task")
	verb := rapid.SampledFrom([]string{"cancel", "reassign", "redispatch", "reassign", "redispatch"}).Draw(m.r, "verb")
	if status := m.post("/v1/tasks/" + taskID + "/" + verb); status != 200 && status != 409 {
		m.fail("%s answers %d", verb, status)
	}
}

// check holds what must always be true against the database.
func (m *model) check(*rapid.T) {
	m.see(func(tx *db.Tx) error {
		runs, err := allRuns.All(tx, m.account)
		if err != nil {
			return err
		}
		live := map[string]*Row{}
		for i := range runs {
			r := &runs[i]
			if r.EndedAt == nil {
				if live[r.TaskID] != nil {
					m.fail("task %s has two live runs", r.TaskID)
				}
				live[r.TaskID] = r
			}
			if err := m.checkEvents(tx, r); err != nil {
				return err
			}
		}
		for _, taskID := range m.tasks {
			t, _, err := task.Get(tx, m.account, taskID)
			if err != nil {
				return err
			}
			if r := live[taskID]; t.Status.InFlight() != (r != nil) || r != nil && (*t.RunID != r.ID || *t.BoxID != r.BoxID || t.Attempt != r.Attempt) {
				m.fail("task %+v with live run %+v", t, r)
			}
			if was, ok := m.final[taskID]; ok && t.Status != was {
				m.fail("task went from %s to %s", was, t.Status)
			}
			if t.Status == task.Completed || t.Status == task.Cancelled {
				m.final[taskID] = t.Status
			}
		}
		return nil
	})
	for _, a := range m.attempts {
		over := m.row(a).EndedAt != nil
		if m.live(a.start.GitToken, TokenGit) == over || m.live(a.start.ModelToken, TokenModel) == over {
			m.fail("run ended: %v, yet its tokens say otherwise", over)
		}
		for _, old := range a.stale {
			if m.live(old, TokenGit) {
				m.fail("a replaced token lives")
			}
		}
	}
}

func (m *model) checkEvents(tx *db.Tx, r *Row) error {
	events, err := allEvents.All(tx, r.ID)
	if err != nil {
		return err
	}
	a := m.attempts[slices.IndexFunc(m.attempts, func(a *attempt) bool { return a.start.Run == r.ID })]
	if int64(len(events)) != r.CommittedSeq || len(events) != len(a.sent) {
		m.fail("run has %d events, says %d, was sent %d", len(events), r.CommittedSeq, len(a.sent))
	}
	for i, e := range events {
		want := string(a.sent[i].Data)
		if want == "" {
			want = "{}"
		}
		if e.Seq != int64(i+1) || e.Kind != a.sent[i].Kind || e.Data != want {
			m.fail("event %d is %+v, was sent as %+v", i+1, e, a.sent[i])
		}
	}
	if r.EndedAt != nil {
		if a.frozen != nil && (*a.frozen.Outcome != *r.Outcome || !a.frozen.EndedAt.Equal(*r.EndedAt) || a.frozen.CommittedSeq != r.CommittedSeq) {
			m.fail("an ended run changed: %+v, was %+v", r, a.frozen)
		}
		a.frozen = r
	}
	return nil
}

func TestRunsUnderDisorder(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.Tasks.Backoff = []time.Duration{time.Second}
		rapid.Check(t, func(r *rapid.T) {
			m := &model{fixture: f.tenant(), r: r, final: map[string]task.Status{}}
			m.tasks = append(m.tasks, m.fixture.create(task.KindWork))
			m.claimAs(m.boxes[0], id.New())
			r.Repeat(map[string]func(*rapid.T){
				"create": m.create, "claim": m.claimOne, "claim again": m.claimAgain, "speak": m.speak, "speak on": m.speak, "finish": m.finish,
				"lose": m.lose, "hello": m.hello, "interfere": m.interfere, "": m.check,
			})
		})
	})
}
