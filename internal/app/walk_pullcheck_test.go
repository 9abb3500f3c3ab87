package app

import (
	"slices"
	"strings"

	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/task"
)

// checkPulls holds what must always be true of pull requests.
func (m *walk) checkPulls(was, now *state) {
	open := map[string]int{}
	for i := range now.actions {
		if a := &now.actions[i]; a.State == record.ActionPending || a.State == record.ActionApproved {
			open[a.PRID]++
		}
	}
	for i := range now.pulls {
		pr := &now.pulls[i]
		if open[pr.ID] > 1 || open[pr.ID] > 0 && !pr.open() {
			m.fail("%+v has %d open actions", pr, open[pr.ID])
		}
		m.checkLife(was, now, pr)
	}
	m.checkOrders(was, now)
	for _, t := range now.tasks {
		m.checkWithTask(now, t)
	}
	m.owePulls(was, now)
}

// checkLife holds a pull request against what it was, and the code host.
func (m *walk) checkLife(was, now *state, pr *pullRow) {
	before := was.pull(pr.ID)
	back := before.State == record.Closed && before.ClosedWhy != record.ClosedCancelled && pr.open()
	if before.State != "" && before.State != record.Open && before.State != pr.State && !back {
		m.fail("%+v was %+v", pr, before)
	}
	kept := []string{"", record.NeedsMerge, record.NeedsRearm, record.NeedsEnable, record.NeedsBaseBranch}
	if !pr.open() && pr.Needs != "" || pr.AbandonedAt != nil && !slices.Contains(kept, pr.Needs) {
		m.fail("nobody has to do anything about %+v", pr)
	}
	if (pr.State == record.Merged) != (pr.MergeSHA != nil) || (pr.State == record.Closed) != (pr.ClosedWhy != "") ||
		(pr.Babysit == record.BabysitDone) != (pr.State == record.Merged) {
		m.fail("%+v", pr)
	}
	r := m.hostRepo(pr.RepoID)
	if pr.MergeSHA != nil && m.forge.landed(r, *pr.MergeSHA) == "" {
		m.fail("%+v is said to be merged", pr)
	}
	// What was abandoned is merged only if that was under way, if somebody pushed
	// it to the base, or if somebody took it over.
	if before.open() && before.AbandonedAt == nil && pr.AbandonedAt != nil {
		// It may be done, and what the host said of it be lost.
		a := was.openAction(pr.ID)
		if a != nil && a.State == record.ActionApproved && a.Called || slices.Contains(m.forge.mergedHeads(r), pr.HeadSHA) {
			m.midway[pr.ID] = true
		}
	}
	if pr.State == record.Merged && pr.AbandonedAt != nil && slices.Contains(m.forge.mergedHeads(r), pr.HeadSHA) && !m.midway[pr.ID] &&
		!m.race[pr.ID] {
		m.fail("%+v was merged after its task was cancelled", pr)
	}
}

// checkOrders wants merges to be what somebody ordered.
func (m *walk) checkOrders(was, now *state) {
	for i := range now.actions {
		a := &now.actions[i]
		pr := now.pull(a.PRID)
		r := m.hostRepo(pr.RepoID)
		switch {
		case a.State == record.ActionApplied && a.HeadSHA != pr.HeadSHA:
			m.fail("%+v was applied, and %+v shows another head", a, pr)
		case a.State == record.ActionApplied && (m.forge.landed(r, a.HeadSHA) == "" || pr.State != record.Merged || a.DecidedBy == nil):
			m.fail("%+v of %+v was applied", a, pr)
		case (a.State == record.ActionPending || a.State == record.ActionApproved) && a.HeadSHA != pr.HeadSHA:
			m.fail("%+v is of another head than %+v", a, pr)
		}
	}
	for _, repoID := range m.repos {
		for _, head := range m.forge.mergedHeads(m.hostRepo(repoID)) {
			if !slices.ContainsFunc(now.actions, func(a actionRow) bool { return a.HeadSHA == head && a.DecidedBy != nil }) {
				m.fail("nobody ordered the merge of %s: %+v", head, now.actions)
			}
		}
	}
}

// reviewed are the needs of which a task says that it awaits a review. One whose
// rounds are spent may be green or not.
var reviewed = []string{record.NeedsDecision, record.NeedsAgain, record.NeedsExpired, record.NeedsMerge}

// checkWithTask holds a task against its pull request.
func (m *walk) checkWithTask(now *state, t taskRow) {
	ships := t.Status == task.AwaitingCI || t.Status == task.AwaitingReview || t.Status == task.Mergeable
	if t.Kind == task.KindCI || t.Kind == task.KindBabysit || !ships {
		return
	}
	if t.PRID == nil {
		m.fail("task %+v has no pull request", t)
	}
	pr := now.pull(*t.PRID)
	a := now.openAction(pr.ID)
	ordered := a != nil && a.State == record.ActionApproved
	switch {
	case !pr.open() || *pr.TaskID != t.ID || pr.AbandonedAt != nil:
		m.fail("task %+v with %+v", t, pr)
	case t.Status == task.Mergeable && !ordered:
		m.fail("task %+v with %+v and %+v", t, pr, a)
	case slices.Contains(reviewed, pr.Needs) && t.Status != task.AwaitingReview:
		m.fail("task %+v with %+v and %+v", t, pr, a)
	case pr.Needs == record.NeedsDecision && (a == nil || a.State != record.ActionPending):
		m.fail("%+v with %+v", pr, a)
	}
}

// owePulls expects an audit row for all that became of pull requests.
func (m *walk) owePulls(was, now *state) {
	had := map[string]bool{}
	for _, t := range was.tasks {
		had[t.ID] = true
	}
	for i := range now.pulls {
		pr := &now.pulls[i]
		before := was.pull(pr.ID)
		back := before.State == record.Closed && pr.open()
		switch {
		case before.ID == "":
			m.owe("pr.opened", pr.ID)
		case back:
			m.owe("pr.reopened", pr.ID)
		}
		if before.State != pr.State && !pr.open() {
			m.owe("pr."+pr.State, pr.ID)
			m.seen["pull "+pr.State+" "+pr.ClosedWhy]++
		}
	}
	for _, t := range now.tasks { // not by pr.BabysitTask: what ended at once is there no more
		if t.Kind == task.KindBabysit && t.PRID != nil && !had[t.ID] {
			m.owe("pr.babysit_round", *t.PRID)
			m.seen["round"]++
		}
	}
	acted := byID(was.actions, func(a actionRow) string { return a.ID })
	for i := range now.actions {
		a := &now.actions[i]
		before, known := acted[a.ID]
		m.oweCarried(&before, a)
		is := a.State
		if is == record.ActionApplied || is == record.ActionFailed {
			is = record.ActionApproved // it was, before
		}
		switch {
		case !known && a.DecidedBy != nil && *a.DecidedBy != "policy" && (is == record.ActionApproved || is == record.ActionStale):
			m.owe("approval.approved", a.ID)
		case !known:
			m.owe("approval.asked", a.ID)
		case before.State == record.ActionPending && is != record.ActionPending && is != record.ActionStale:
			m.owe("approval."+is, a.ID)
		case before.State == record.ActionPending && is == record.ActionStale && a.DecidedBy != nil:
			m.owe("approval.approved", a.ID) // and a question that names more took its place
		}
		if a.State == record.ActionFailed && before.State != record.ActionFailed {
			m.owe("pr.merge_failed", a.PRID)
		}
	}
	m.oweRequests(was, now)
	checked := byID(was.checks, func(c checkRow) string { return c.ID })
	for _, c := range now.checks {
		if before := checked[c.ID]; c.FinishedAt != nil &&
			(before.FinishedAt == nil || before.TaskID != c.TaskID || !before.FinishedAt.Equal(*c.FinishedAt)) {
			m.owe("ci."+c.Status, c.ID)
			m.seen["check "+c.Status]++
		}
	}
	asked := byID(was.troubles, func(t troubleRow) string { return t.ID })
	for _, t := range now.troubles {
		before, known := asked[t.ID]
		if !known {
			m.owe("escalation.raised", t.ID)
		}
		if before.ResolvedAt == nil && t.ResolvedAt != nil {
			m.owe("escalation.resolved", t.ID)
		}
		if pr := now.pull(t.PRID); t.ResolvedAt == nil && (!pr.open() || pr.AbandonedAt != nil) {
			m.fail("%+v is open about %+v", t, pr)
		}
	}
}

// oweReturns expects both rows of a pull request that was closed and, in the same
// step, reopened by a push: a look at it before and after does not tell of that.
func (m *walk) oweReturns(rows []link) {
	closed := map[string]bool{}
	for _, l := range rows {
		switch {
		case l.Kind == "pr.closed" && strings.Contains(l.Data, `"why":"`+record.ClosedEmpty+`"`):
			closed[l.Object] = true
		case l.Kind == "pr.reopened" && closed[l.Object] && !slices.Contains(m.expected, "pr.reopened "+l.Object):
			m.owe("pr.closed", l.Object)
			m.owe("pr.reopened", l.Object)
			m.seen["pull closed and reopened in a step"]++
			delete(closed, l.Object)
		}
	}
}

// told tells whether an audit row is one of those about pull requests that are
// not counted.
func (m *walk) toldOfPull(l link) bool {
	switch l.Kind {
	case "approval.stale":
		if before, told := m.staled[l.Object]; told {
			m.fail("an action is stale again: %+v, was %+v: %+v", l, before, m.was.actions)
		}
		m.staled[l.Object] = l
		return true
	case "approval.carried":
		delete(m.staled, l.Object) // it may be stale again
		return true
	case "pr.head_moved":
		m.headTold[l.Object] = l.Data
		return true
	case "ci.running", "pr.conflict", "repo.pushed":
		m.seen[l.Kind]++
		return true
	}
	return false
}

// headsTold wants the audit trail to have come to the head that there is.
func (m *walk) headsTold(was, now *state) {
	for i := range now.pulls {
		pr := &now.pulls[i]
		if before := was.pull(pr.ID); before.ID != "" && before.HeadSHA != pr.HeadSHA && pr.State != record.Merged &&
			!strings.Contains(m.headTold[pr.ID], pr.HeadSHA) {
			m.fail("%+v was %+v, and the audit trail says %s", pr, before, m.headTold[pr.ID])
		}
	}
}

// rested holds what must be true when the loops of all nodes have passed.
func (m *walk) rested() {
	m.asTable()
	now := &m.was
	for _, t := range now.tasks {
		if (t.Kind == task.KindCI || t.Kind == task.KindBabysit) && !t.Status.Terminal() {
			if pr := now.pull(*t.PRID); !pr.open() || pr.AbandonedAt != nil {
				m.fail("task %+v minds %+v", t, pr)
			}
		}
	}
	for i := range now.pulls {
		pr := &now.pulls[i]
		a := now.openAction(pr.ID)
		ordered := a != nil && a.State == record.ActionApproved
		r := m.hostRepo(pr.RepoID)
		if ordered || !pr.open() {
			continue
		}
		switch {
		case m.forge.landed(r, pr.HeadSHA) != "":
			m.fail("%+v is in its base, and open with %+v", pr, a)
		case m.forge.at(r, pr.HeadRef) == "":
			m.fail("the branch of %+v is gone, and it is open with %+v", pr, a)
		case m.forge.at(r, pr.HeadRef) != pr.HeadSHA:
			m.fail("the branch of %+v is at %s", pr, m.forge.at(r, pr.HeadRef))
		case pr.AbandonedAt == nil && pr.Needs == "" && !m.underWay(now, pr):
			m.fail("nothing goes on about %+v with %+v, and nobody has to do anything: %+v %+v", pr, a, now.checks, now.tasks[*pr.TaskID])
		}
	}
}

// underWay tells whether an open pull request without an order goes on without a
// person: by its check, or by a round, now or later, or once its repository is
// on again.
func (m *walk) underWay(now *state, pr *pullRow) bool {
	if m.disabled[pr.RepoID] {
		return true
	}
	if pr.Checks == record.ChecksPending {
		return slices.ContainsFunc(now.checks, func(c checkRow) bool {
			return c.PRID == pr.ID && c.SHA == pr.HeadSHA && c.FinishedAt == nil && !now.tasks[c.TaskID].Status.Terminal()
		})
	}
	if pr.BabysitTask != nil {
		return !now.tasks[*pr.BabysitTask].Status.Terminal()
	}
	return pr.Babysit == record.BabysitWatching && (pr.Checks == record.ChecksFailed || pr.Mergeable == "conflict" || pr.Remarks > 0)
}

// behindPulls wants the tasks that wait, at any remove, for one whose pull
// request waits for a person to say so. Rows are the pending tasks, as listed.
func (m *walk) behindPulls(rows []any) {
	pending := map[string]map[string]any{}
	for _, row := range rows {
		row := row.(map[string]any)
		pending[row["id"].(string)] = row
	}
	var behind func(taskID string, seen map[string]bool) []*pullRow
	behind = func(taskID string, seen map[string]bool) (found []*pullRow) {
		for _, up := range pending[taskID]["depends_on"].([]any) {
			up := up.(string)
			if t := m.was.tasks[up]; t.PRID != nil && t.Status.Shipped() && !t.Status.Terminal() {
				if pr := m.was.pull(*t.PRID); pr.Needs != "" {
					found = append(found, pr)
				}
			} else if pending[up] != nil && !seen[up] {
				seen[up] = true
				found = append(found, behind(up, seen)...)
			}
		}
		return found
	}
	for taskID, row := range pending {
		for _, pr := range behind(taskID, map[string]bool{}) {
			if !slices.ContainsFunc(row["holds"].([]any), func(h any) bool {
				hold := h.(map[string]any)
				return hold["reason"] == task.HoldPerson &&
					strings.Contains(hold["clears_when"].(string), record.ClearsWhen(pr.Needs, pr.Findings))
			}) {
				m.fail("task %s waits for %+v, and says %v", taskID, pr, row["holds"])
			}
			m.seen["behind a person"]++
		}
	}
}
