package app

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// check holds what must always be true.
func (m *walk) check() {
	if m.broken != nil {
		m.fail("%v", m.broken)
	}
	if len(m.heard) > 0 {
		m.fail("moves that begin elsewhere: %v", m.heard)
	}
	was := m.was
	var rows []link
	m.see(func(tx *db.Tx) (err error) {
		if m.was, err = m.load(tx); err != nil {
			return err
		}
		rows, err = newLinks.All(tx, m.account, m.newest.Seq)
		return err
	})
	now := m.was
	m.checkTasks(&was, &now)
	m.checkRuns(&was, &now)
	m.checkBlockers(&was, &now)
	m.checkPlans(&was, &now)
	m.checkMoney(&was, &now)
	m.checkPulls(&was, &now)
	m.asTable()
	m.checkSeats(&was, &now)
	m.audited(rows)
	m.headsTold(&was, &now)
	if len(rows) > 0 {
		m.see(func(tx *db.Tx) error {
			if bad, err := untrue.All(tx, m.account); err != nil || len(bad) > 0 {
				m.fail("%s %v", bad, err)
			}
			return nil
		})
	}
	m.tokens()
	m.explained()
	if m.broken != nil {
		m.fail("%v", m.broken)
	}
}

func (m *walk) checkTasks(was, now *state) {
	live := map[string]runRow{}
	for _, r := range now.runs {
		if r.EndedAt == nil {
			if other, ok := live[r.TaskID]; ok {
				m.fail("task %s has two live runs, %s and %s", r.TaskID, r.ID, other.ID)
			}
			live[r.TaskID] = r
		}
	}
	if len(now.tasks) != len(m.tasks) {
		m.fail("there are %d tasks, and were told of %d: %+v %v %+v", len(now.tasks), len(m.tasks), now.tasks, m.tasks, now.plans)
	}
	for _, t := range now.tasks {
		if t.Status != m.believe[t.ID] {
			m.fail("task %s is %s, and was last told to be %s", t.ID, t.Status, m.believe[t.ID])
		}
		r, flies := live[t.ID]
		if t.Status.InFlight() != flies || flies && (*t.RunID != r.ID || *t.BoxID != r.BoxID || t.Attempt != r.Attempt) {
			m.fail("task %+v with live run %+v", t, r)
		}
		before, known := was.tasks[t.ID]
		if known && before.Status != t.Status && before.Status.Terminal() && before.Status != task.Failed {
			m.fail("task %s went from %s to %s", t.ID, before.Status, t.Status)
		}
		// A fault of a box is no try of the task.
		if before.Status.InFlight() && t.Status == task.Pending && t.Attempt == before.Attempt && t.FailureKind != nil &&
			*t.FailureKind == task.BoxUnfit {
			m.seen["a box that was unfit"]++
			if t.Charged != before.Charged || t.Uncharged != before.Uncharged {
				m.fail("task %+v was %+v", t, before)
			}
		}
	}
}

// checkRuns holds the runs against what their boxes were told and have said.
func (m *walk) checkRuns(was, now *state) {
	if len(now.runs) != len(m.attempts) {
		m.fail("there are %d runs, and boxes know of %d", len(now.runs), len(m.attempts))
	}
	for _, a := range m.attempts {
		r, before := now.runs[a.start.Run], was.runs[a.start.Run]
		if before.EndedAt == nil && r.EndedAt != nil {
			m.owe("run.ended", r.ID)
		}
		if before.EndedAt != nil && !reflect.DeepEqual(before, r) {
			m.fail("an ended run changed: %+v, was %+v", r, before)
		}
		if r.CommittedSeq != int64(len(a.sent)) {
			m.fail("run %s says it has %d events, was sent %d", r.ID, r.CommittedSeq, len(a.sent))
		}
		if a.stored < len(a.sent) {
			m.stored(a)
		}
	}
}

// stored reads the events that were added to an attempt.
func (m *walk) stored(a *attempt) {
	var events []eventRow
	m.see(func(tx *db.Tx) (err error) { events, err = eventsOf.All(tx, a.start.Run, a.stored); return err })
	for _, e := range events {
		if e.Seq != int64(a.stored+1) || a.stored >= len(a.sent) {
			m.fail("event %d follows %d of %d", e.Seq, a.stored, len(a.sent))
		}
		sent := a.sent[a.stored]
		if e.Kind != sent.Kind || e.Data != cmp.Or(string(sent.Data), "{}") {
			m.fail("event %+v was sent as %+v", e, sent)
		}
		a.stored++
	}
	if a.stored != len(a.sent) {
		m.fail("run %s has %d events, was sent %d", a.start.Run, a.stored, len(a.sent))
	}
}

// whole reads all events again.
func (m *walk) whole() {
	for _, a := range m.attempts {
		a.stored, a.proved = 0, ""
		m.stored(a)
	}
	m.tokens()
}

func (m *walk) checkBlockers(was, now *state) {
	declared := map[string]int{} // by task: those there are, and those that were taken over in place of another
	waits := map[string]bool{}
	for _, b := range now.asked {
		declared[b.TaskID]++
		before, known := was.blockers[b.ID]
		switch {
		case !known:
			m.owe("blocker.declared", b.ID)
			before.State = "open"
		case before.RunID != b.RunID:
			m.seen["a blocker taken over"]++
			if now.runs[before.RunID].EndedAt == nil {
				m.fail("blocker %+v of a live run was taken over: %+v", before, b)
			}
			if b.Declared != b.ID { // by a declaration: what is taken over with an answer has its own id there
				m.owe("blocker.adopted", b.ID)
				m.adopted[b.TaskID]++
			}
		}
		if before.State != "open" && before.State != b.State {
			m.fail("blocker %+v was %s", b, before.State)
		}
		if before.State == "open" && b.State == "expired" {
			m.owe("blocker.expired", b.ID)
		}
		if b.State == "open" {
			waits[b.TaskID] = true
			if m.believe[b.TaskID] == task.Cancelled {
				m.fail("blocker %+v of a task that was cancelled", b)
			}
		}
	}
	asked := map[string]int{}
	for _, a := range m.attempts {
		names := map[string]bool{}
		n := 0
		for _, e := range a.sent {
			if e.Kind == protocol.EventBlocker {
				if n++; n <= protocol.MaxDeclared {
					names[string(e.Data[:len(`{"id":"xxx`)])] = true
				}
			}
		}
		asked[a.start.Task] += len(names)
	}
	for taskID, n := range asked {
		if declared[taskID]+m.adopted[taskID] != n {
			m.fail("task %s has %d blockers and %d that were taken over, its runs declared %d", taskID, declared[taskID],
				m.adopted[taskID], n)
		}
	}
	// What has all that it asked for goes on.
	for _, b := range now.asked {
		before, t := was.tasks[b.TaskID], now.tasks[b.TaskID]
		if b.State == "open" || was.blockers[b.ID].State != "open" || waits[b.TaskID] || before.Status != task.Held ||
			t.Status != task.Held || *t.FailureKind != task.Blocked {
			continue
		}
		for _, c := range now.asked {
			if c.RunID == b.RunID && (c.State == "answered" || c.State == "submitted") {
				m.fail("task %+v is held, and has what it asked for: %+v %+v", t, b, c)
			}
		}
	}
}

// groupState derives what a group is at.
func groupState(g groupRow, tasks []taskRow) string {
	if g.Closed != "" {
		return g.Closed
	}
	has := map[string]bool{}
	for _, t := range tasks {
		switch {
		case t.Status == task.Completed || t.Status == task.Merged:
			has[plan.Done] = true
		case t.Status == task.Cancelled:
			has[plan.Stopped] = true
		case t.Status == task.Failed:
			has[plan.Failed] = true
		case t.Status == task.Held:
			has[plan.Held] = true
		case t.Status != task.Pending:
			has[plan.Running] = true
		case t.WaitingDeps > 0:
			has[plan.Waiting] = true
		default:
			has[plan.Ready] = true
		}
	}
	for _, is := range []string{plan.Failed, plan.Stopped, plan.Held, plan.Running, plan.Waiting, plan.Ready, plan.Done} {
		if has[is] {
			return is
		}
	}
	return plan.Held // nothing was minted yet
}

func (m *walk) checkPlans(was, now *state) {
	if len(now.plans) != len(m.plans) {
		m.fail("there are %d plans, and were told of %d", len(now.plans), len(m.plans))
	}
	tasks, count := map[string][]taskRow{}, map[string]map[string]int64{}
	for _, t := range now.tasks {
		if t.GroupID != nil {
			tasks[*t.GroupID] = append(tasks[*t.GroupID], t)
		}
	}
	closed := byID(was.groups, func(g groupRow) string { return g.ID })
	for _, g := range now.groups {
		if len(tasks[g.ID]) > 1 {
			m.fail("group %+v was released more than once: %+v", g, tasks[g.ID])
		}
		if p := now.plans[g.PlanID]; p.ApprovedAt != nil && len(tasks[g.ID]) == 0 {
			m.fail("plan %+v was approved, and nothing released of %+v", p, g)
		}
		if before := closed[g.ID]; before.Closed != "" && before.Closed != g.Closed && g.Closed != plan.Superseded {
			m.fail("group %+v was %s", g, before.Closed)
		}
		if count[g.PlanID] == nil {
			count[g.PlanID] = map[string]int64{}
		}
		count[g.PlanID][groupState(g, tasks[g.ID])]++
	}
	drafted := map[string]bool{}
	for _, g := range was.groups {
		drafted[g.PlanID] = true
	}
	for _, p := range now.plans {
		before := was.plans[p.ID]
		if before.FailedAt == nil && p.FailedAt != nil {
			m.owe("plan.failed", p.ID)
		}
		if p.Source == plan.SourceStart && !drafted[p.ID] && count[p.ID] != nil {
			m.owe("plan.drafted", p.ID)
		}
		if before.CancelledAt != nil && p.Status != plan.Cancelled || before.ApprovedAt != nil && p.ApprovedAt == nil {
			m.fail("plan %+v was %+v", p, before)
		}
		m.checkProgress(p, count[p.ID])
	}
}

// checkProgress holds what is stored of a plan against its groups.
func (m *walk) checkProgress(p planRow, count map[string]int64) {
	var total int64
	for is, n := range count {
		if is != plan.Superseded {
			total += n
		}
	}
	done, stopped, failed := count[plan.Done], count[plan.Stopped], count[plan.Failed]
	want := plan.Running
	switch {
	case p.CancelledAt != nil:
		want = plan.Cancelled
	case p.FailedAt != nil:
		want = plan.Failed
	case total == 0:
		want = plan.Drafting
	case total == done:
		want = plan.Done
	case total == stopped:
		want = plan.Cancelled
	case p.ApprovedAt == nil:
		want = plan.Held
	case total == done+stopped+failed:
		want = plan.Failed
	}
	if p.Status != want || p.Total != total || p.Merged != done || p.HeldCount != count[plan.Held] {
		m.fail("plan %+v has groups %v and should be %s", p, count, want)
	}
}

// tokens wants the tokens of an attempt to work as long as it lives.
func (m *walk) tokens() {
	for _, a := range m.attempts {
		r := m.was.runs[a.start.Run]
		over := r.EndedAt != nil
		at := fmt.Sprint(over, m.spent(a), len(a.stale))
		if a.proved == at {
			continue
		}
		a.proved = at
		works := func(token, kind string) bool {
			_, ok, err := m.nodes[0].parts.run.ResolveToken(context.Background(), token, kind)
			if err != nil {
				m.fail("%v", err)
			}
			return ok
		}
		for kind, token := range map[string]string{run.TokenGit: a.start.GitToken, run.TokenModel: a.start.ModelToken} {
			if token == "" && a.start.Kind == task.KindCI {
				continue // a check needs no model
			}
			if ok := works(token, kind); ok && over || !ok && !over && !m.spent(a) {
				m.fail("run ended: %v, and its %s token works: %v", over, kind, ok)
			}
		}
		for _, old := range a.stale {
			if works(old, run.TokenGit) {
				m.fail("a replaced token lives")
			}
		}
	}
}

// audited wants exactly one audit row for each thing that happened: for each
// move of a task, and for whatever else was changed.
func (m *walk) audited(rows []link) {
	moves := m.moves
	m.moves = map[string][]task.Status{}
	m.oweReturns(rows)
	expected := m.expected
	m.expected = nil
	for _, l := range rows {
		if l.Seq != m.newest.Seq+1 || l.PrevHash != m.newest.Hash {
			m.fail("audit row %+v follows %+v", l, m.newest)
		}
		m.newest = l
		m.kinds[l.Kind]++
		if i := slices.Index(expected, l.Kind+" "+l.Object); i >= 0 {
			expected = slices.Delete(expected, i, i+1)
			continue
		}
		if m.toldOfPull(l) {
			continue
		}
		switch l.Kind {
		case "task.held_back":
			continue
		case "budget.nearly_spent":
			m.nearlySpent(l)
			continue
		case "task.stuck", "task.unstuck":
			if is := l.Kind == "task.stuck"; m.stuck[l.Object] == is &&
				!strings.Contains(l.Data, `"failure_kind"`) { // for another reason, maybe
				m.fail("a task that was so already: %+v", l)
			} else {
				m.stuck[l.Object] = is
			}
			continue
		}
		next := moves[l.Object]
		if len(next) == 0 || !strings.HasPrefix(l.Kind, "task.") || !strings.Contains(l.Data, `"status":"`+string(next[0])+`"`) {
			m.fail("nothing happened of which this tells: %+v; left are %v %v", l, moves, expected)
		}
		if moves[l.Object] = next[1:]; !next[0].InFlight() {
			m.stuck[l.Object] = false
		}
		if len(next) == 1 {
			delete(moves, l.Object)
		}
	}
	if len(moves) > 0 || len(expected) > 0 {
		m.fail("no audit row tells of %v %v", moves, expected)
	}
	for _, t := range m.was.tasks {
		if t.Stuck != m.stuck[t.ID] {
			m.fail("task %+v, and its audit rows say stuck: %v", t, m.stuck[t.ID])
		}
	}
}
