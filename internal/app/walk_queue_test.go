package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

var (
	enableRepo = db.S(`UPDATE repos SET enabled = $2 WHERE id = $1`)
	setFleet   = db.SWith[setFleetArgs](`UPDATE boxes SET slots = :slots, presence = :presence, last_beat_at = :last_beat_at, unfit = :unfit
		WHERE id = :id`)
)

// setFleetArgs are the parameters of setFleet.
type setFleetArgs struct {
	ID         string
	Slots      int
	Presence   string
	LastBeatAt *time.Time
	Unfit      any
}

// actions are the steps of a walk.
func (m *walk) actions() map[string]func() {
	all := map[string]func(){
		"file": m.file, "claim": m.claimOne, "claim both": m.claimBoth, "claim more": m.claimBoth, "claim again": m.claimAgain,
		"speak": m.speak, "speak on": m.speak, "finish": m.finish, "finish more": m.finish, "break down": m.breakDown, "lose": m.lose,
		"hello": m.hello,
		"old":   m.old, "wait": m.wait, "interfere": m.interfere, "relink": m.relink, "fleet": m.fleet, "enable": m.enable,
		"restart":      m.restart,
		"start a plan": m.startPlan, "author a plan": m.authorPlan, "approve": m.approve, "cancel a plan": m.cancelPlan,
		"regroup": m.regroup, "unlink": m.unlink,
		"declare": m.declare, "park": m.park, "answer": m.answer, "submit": m.submit, "submit more": m.submit, "withdraw": m.withdraw,
		"reserve": m.reserve, "reserve more": m.reserve, "reserve both": m.reserveBoth, "settle": m.settle, "cap": m.cap, "sweep": m.sweep,
		"seat": m.seat, "drain": m.drainBox, "restart box": m.restartBox,
	}
	maps.Copy(all, m.pullActions())
	maps.Copy(all, m.peopleActions())
	return all
}

func (m *walk) pick() *attempt {
	if len(m.attempts) == 0 {
		panic(idle{})
	}
	return one(m, m.attempts, "attempt")
}

// pickLive is an attempt that lives, as a rule.
func (m *walk) pickLive() *attempt {
	var live []*attempt
	for _, a := range m.attempts {
		if m.alive(a) {
			live = append(live, a)
		}
	}
	if rapid.IntRange(0, 9).Draw(m.r, "any") == 7 {
		return m.pick()
	}
	if len(live) == 0 {
		panic(idle{})
	}
	return one(m, live, "live")
}

// alive tells whether an attempt had not ended at the last check.
func (m *walk) alive(a *attempt) bool { return m.was.runs[a.start.Run].EndedAt == nil }

func (m *walk) any() string {
	if len(m.tasks) == 0 {
		panic(idle{})
	}
	return one(m, m.tasks, "task")
}

func (m *walk) repoName() string {
	return m.account + "/" + rapid.SampledFrom(repoNames).Draw(m.r, "repo")
}

// file asks for a task, with dependencies on what there is.
func (m *walk) file() {
	if m.filed() >= 20 {
		panic(idle{})
	}
	n := m.on()
	var deps []string
	for range rapid.IntRange(0, 2).Draw(m.r, "deps") {
		if len(m.tasks) > 0 {
			deps = append(deps, one(m, m.tasks, "on"))
		}
	}
	body := map[string]any{
		"repo": m.repoName(), "title": "Fix it", "problem": "It is broken.", "depends_on": deps,
		"priority": rapid.SampledFrom([]int{10, 50, 50, 100}).Draw(m.r, "priority"),
		"files":    rapid.SampledFrom([][]string{{}, {"a.go"}, {"**/*.go"}, {"docs"}}).Draw(m.r, "files"),
		"labels":   map[string]string{"n": strconv.Itoa(len(m.tasks))},
	}
	status, out := m.call(n, "POST", "/v1/tasks", body)
	switch {
	case status == 202:
		if at, depth := out["queue_position"].(float64), out["queue_depth"].(float64); at < 1 || at > depth {
			m.fail("filed as number %v of %v", at, depth)
		}
	case status == 400 && slices.ContainsFunc(deps,
		func(d string) bool { return m.believe[d] == task.Failed || m.believe[d] == task.Cancelled }):
	case status == 409:
	default:
		m.fail("filed: %d %v", status, out)
	}
}

// filed is how many tasks people have asked for.
func (m *walk) filed() (n int) {
	for _, t := range m.was.tasks {
		if t.Kind == task.KindWork {
			n++
		}
	}
	return n
}

// claimBoth has both boxes claim at the same moment, on a node each.
func (m *walk) claimBoth() {
	var replies [2]protocol.ClaimReply
	var errs [2]error
	var claims [2]string
	var wg sync.WaitGroup
	for i := range 2 {
		claims[i] = id.New()
		wg.Go(func() {
			replies[i], errs[i] = m.nodes[i].parts.run.Claim(context.Background(), m.boxes[i], protocol.Claim{ID: claims[i], Free: 1})
		})
	}
	wg.Wait()
	for i, r := range replies {
		if errs[i] != nil {
			m.fail("claim: %v", errs[i])
		}
		if r.Run != nil {
			m.attempts = append(m.attempts, &attempt{box: m.boxes[i], claim: claims[i], start: r.Run})
		} else if len(r.Reasons) == 0 {
			m.fail("a claim that gets nothing is told why")
		}
	}
}

func (m *walk) claimOne() {
	m.claimAs(m.on(), one(m, m.boxes[:], "box"), id.New())
}

// claimAgain repeats a claim whose answer got lost.
func (m *walk) claimAgain() {
	a := m.pick()
	m.claimAs(m.on(), a.box, a.claim)
}

func (m *walk) claimAs(n *node, box, claim string) {
	reply, err := n.parts.run.Claim(context.Background(), box, protocol.Claim{ID: claim, Free: 1})
	if err != nil {
		m.fail("claim: %v", err)
	}
	i := slices.IndexFunc(m.attempts, func(a *attempt) bool { return a.box == box && a.claim == claim })
	switch {
	case reply.Run == nil:
	case i < 0:
		m.attempts = append(m.attempts, &attempt{box: box, claim: claim, start: reply.Run})
		if reply.Run.Base != "" {
			m.seen["begun on top of other work"]++
		}
	case m.attempts[i].start.Run != reply.Run.Run:
		m.fail("a repeated claim got another run")
	default:
		a := m.attempts[i]
		a.stale, a.start, a.proved = append(a.stale, a.start.GitToken), reply.Run, ""
	}
}

func said(kind string, data any) protocol.Event {
	e := protocol.Event{Kind: kind, T: 1_800_000_000_000}
	if data != nil {
		e.Data, _ = json.Marshal(data) // of our own types: cannot fail
	}
	return e
}

// speak sends events that begin somewhere around where they should.
func (m *walk) speak() {
	a := m.pickLive()
	var batch []protocol.Event
	for range rapid.IntRange(1, 4).Draw(m.r, "events") {
		batch = append(batch, rapid.SampledFrom([]protocol.Event{
			said("agent.update", map[string]int{"n": len(a.sent)}), said(protocol.EventStarted, protocol.Started{Agent: "builtin"}),
			said(protocol.EventPushed, protocol.Pushed{SHA: "wip", WIP: true}), said(protocol.EventAccepted, nil),
			said(protocol.EventResumed, nil),
		}).Draw(m.r, "event"))
	}
	m.say(a, batch, rapid.Int64Range(-2, 1).Draw(m.r, "offset"))
}

func (m *walk) finish() {
	m.end(m.pickLive(), one(m, []protocol.Finished{
		{State: protocol.Succeeded, Report: "done"}, {State: protocol.Failed, Kind: task.AgentError},
		{State: protocol.Halted, WIP: true, Tip: "w"},
		{State: protocol.Blocked}, {State: protocol.Failed, Kind: task.PolicyRefused},
	}, "end"))
}

// breakDown has an attempt end for a fault of its box, which is given nothing
// more until the fleet changes.
func (m *walk) breakDown() {
	a := m.pickLive()
	if m.alive(a) && m.unfit[a.box] == nil {
		m.owe("box.unfit", a.box)
		m.unfit[a.box] = "no room"
	}
	m.end(a, protocol.Finished{State: protocol.Failed, Kind: task.BoxUnfit, Error: "no room"})
}

func (m *walk) end(a *attempt, f protocol.Finished) {
	m.say(a, []protocol.Event{said(protocol.EventFinished, f)}, 0)
}

// report is the plan that a scout brings back.
func (m *walk) report() string {
	var b strings.Builder
	b.WriteString("Found.\n```plan overview.md\n# The whole\n```\n")
	for i := range rapid.IntRange(2, 4).Draw(m.r, "slices") {
		fmt.Fprintf(&b, "```plan %02d-part.md\n---\n", i+1)
		if i > 0 && rapid.IntRange(0, 3).Draw(m.r, "edge") > 0 {
			fmt.Fprintf(&b, "depends_on: [{unit: %02d-part, kind: %s}]\n", rapid.IntRange(1, i).Draw(m.r, "up"), m.edge())
		}
		fmt.Fprintf(&b, "repo: %s\n---\n# Part %d\n\nDo it.\n```\n", m.repoName(), i+1)
	}
	return b.String()
}

// say sends a batch at an offset from what comes next: events before that are
// repeated as they were, a gap has to be refused.
func (m *walk) say(a *attempt, batch []protocol.Event, offset int64) {
	next := int64(len(a.sent)) + 1
	first := max(next+offset, 1)
	if first < next {
		batch = append(slices.Clone(a.sent[first-1:]), batch...)
	}
	for i := range batch {
		batch[i].Seq = first + int64(i)
	}
	alive, before := m.alive(a), state{}
	if !alive {
		before = m.read()
	}
	out, err := m.on().parts.run.Append(context.Background(), a.box,
		protocol.Envelope{V: protocol.Version, Run: a.start.Run, Attempt: a.start.Attempt, Events: batch})
	switch {
	case err != nil:
		m.fail("append: %v", err)
	case !alive && !out.Closed:
		m.fail("what an ended attempt says is taken: %+v", out)
	case !alive:
		if after := m.read(); !after.same(before) {
			m.fail("an ended attempt changed something:\n%+v\n%+v", before, after)
		}
	case first > next && out.Seq != next-1:
		m.fail("a gap was taken: %+v", out)
	case first <= next:
		a.sent = append(a.sent, batch[next-first:]...)
	}
}

// lose lets leases run out, but for one that is renewed.
func (m *walk) lose() {
	a, n := m.pick(), m.on()
	m.elapse(60 * time.Second)
	if _, err := n.parts.run.Renew(context.Background(), a.box, protocol.Renew{Run: a.start.Run, Attempt: a.start.Attempt}); err != nil {
		m.fail("renew: %v", err)
	}
	m.elapse(20 * time.Second)
	m.scan(n)
}

func (m *walk) scan(n *node) {
	if err := n.parts.run.Scan(context.Background()); err != nil {
		m.fail("scan: %v", err)
	}
}

func (m *walk) hello() {
	box := one(m, m.boxes[:], "box")
	var refs []protocol.RunRef
	var of []*attempt
	for _, a := range m.attempts {
		if a.box == box && rapid.IntRange(0, 3).Draw(m.r, "remembers") < 3 {
			refs, of = append(refs, protocol.RunRef{Run: a.start.Run, Attempt: a.start.Attempt, Seq: int64(len(a.sent))}), append(of, a)
		}
	}
	m.elapse(10 * time.Second)
	verdicts, err := m.on().parts.run.Verdicts(context.Background(), box, refs)
	if err != nil {
		m.fail("hello: %v", err)
	}
	now := m.read()
	for i, v := range verdicts {
		a := of[i]
		if goesOn := v.Do == protocol.DoContinue; goesOn != (now.runs[a.start.Run].EndedAt == nil) ||
			goesOn && v.FromSeq != int64(len(a.sent))+1 {
			m.fail("verdict %+v of a run at %d", v, len(a.sent))
		}
	}
}

// old is a box that was cut off and does not know it.
func (m *walk) old() {
	a := m.pick()
	if m.alive(a) {
		panic(idle{})
	}
	n, before := m.on(), m.read()
	if r, err := n.parts.run.Renew(context.Background(), a.box,
		protocol.Renew{Run: a.start.Run, Attempt: a.start.Attempt}); err != nil || r.OK {
		m.fail("an ended attempt was renewed: %+v %v", r, err)
	}
	if r, err := n.parts.run.Accept(context.Background(), a.box,
		protocol.Accept{Run: a.start.Run, Attempt: a.start.Attempt}); err != nil || r.OK {
		m.fail("an ended attempt was accepted: %+v %v", r, err)
	}
	if _, err := n.parts.run.GitToken(context.Background(), a.box,
		protocol.GitTokenAsk{Run: a.start.Run, Attempt: a.start.Attempt}); err == nil {
		m.fail("an ended attempt got a git token")
	}
	if after := m.read(); !after.same(before) {
		m.fail("an ended attempt changed something:\n%+v\n%+v", before, after)
	}
}

func (m *walk) wait() {
	d := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Second, time.Minute, 20 * time.Minute, 0}).Draw(m.r, "time")
	if d == 0 { // to the last second of the month
		now := m.now().UTC()
		d = max(time.Date(now.Year(), now.Month()+1, 1, 0, 0, -1, 0, time.UTC).Sub(now), time.Second)
	}
	m.elapse(d)
	if rapid.Bool().Draw(m.r, "scan") {
		m.scan(m.on())
	}
}

func (m *walk) interfere() {
	taskID := m.any()
	verb := rapid.SampledFrom([]string{"cancel", "reassign", "redispatch", "reassign", "redispatch"}).Draw(m.r, "verb")
	was := m.believe[taskID]
	status, out := m.call(m.on(), "POST", "/v1/tasks/"+taskID+"/"+verb, map[string]any{})
	switch {
	case status != 200 && status != 409:
		m.fail("%s answers %d %v", verb, status, out)
	case verb == "cancel" && (status != 200 || (out["kind"] == "already_terminal") != was.Terminal()),
		verb == "reassign" && (status == 409) != was.Terminal(), verb == "reassign" && status == 200 && out["reassigned"] != was.InFlight(),
		verb == "redispatch" && status == 200 && was != task.Failed && was != task.Held && was != task.Running:
		m.fail("%s of a task that was %s answers %d %v", verb, was, status, out)
	}
}

// fleet takes boxes away and gives them back.
func (m *walk) fleet() {
	box, slots := one(m, m.boxes[:], "box"), rapid.SampledFrom([]int{0, 1, 2, 2}).Draw(m.r, "slots")
	presence := rapid.SampledFrom([]string{"online", "online", "online", "offline"}).Draw(m.r, "presence")
	m.unfit[box] = rapid.SampledFrom([]any{nil, nil, nil, "no namespaces"}).Draw(m.r, "unfit")
	m.fleets++
	m.do(func(tx *db.Tx) error {
		_, err := setFleet.Exec(tx, setFleetArgs{
			ID: box, Slots: slots, Presence: presence,
			LastBeatAt: rapid.SampledFrom([]*time.Time{nil, &tx.Now}).Draw(m.r, "beat"), Unfit: m.unfit[box],
		})
		return err
	})
}

func (m *walk) enable() {
	at, enabled := one(m, m.repos, "repo"), rapid.SampledFrom([]bool{true, true, true, false}).Draw(m.r, "enabled")
	m.fleets++
	m.turnRepo(at, enabled)
}

// turnRepo switches a repository on or off.
func (m *walk) turnRepo(at string, enabled bool) {
	m.disabled[at] = !enabled
	m.do(func(tx *db.Tx) error {
		if _, err := enableRepo.Exec(tx, at, enabled); err != nil {
			return err
		}
		r, _, err := repo.ByID(tx, at)
		if err != nil {
			return err
		}
		return part[*pull.Service](m.nodes[0]).PolicyChanged(tx, r)
	})
}

// restart ends a node: in order, or with calls to models under way.
func (m *walk) restart() {
	i := rapid.IntRange(0, 1).Draw(m.r, "which")
	n := m.nodes[i]
	if rapid.Bool().Draw(m.r, "in order") {
		m.close(n)
	}
	m.nodes[i] = m.boot(n.db)
}

// close ends what a node does, as App.close does.
func (m *walk) close(n *node) {
	m.record(n, n.calls, nil)
	n.calls = nil
	n.parts.gateway.Close()
	if err := n.parts.budget.Close(context.Background()); err != nil {
		m.fail("close: %v", err)
	}
	m.see(func(tx *db.Tx) error {
		held, err := reservedBy.All(tx, n.parts.budget.Node)
		if len(held) > 0 {
			err = errors.Join(err, fmt.Errorf("a stopped node holds money for %s", held))
		}
		return err
	})
}
