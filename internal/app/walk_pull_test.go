package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/codehost"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// pullActions are the steps of a walk that are about pull requests.
func (m *walk) pullActions() map[string]func() {
	return map[string]func(){
		"deliver": m.deliver, "hasten": m.hasten, "hasten on": m.hasten, "check": m.checkEnds, "check on": m.checkEnds, "repair": m.repair,
		"decide": m.decide, "decide on": m.decide, "stack": m.stack, "stack on": m.stack, "drop below": m.dropBelow, "oblige": m.oblige,
		"oblige on": m.oblige, "rearm": m.rearm, "cancel with pull": m.cancelWithPull,
		"pass": m.passOne, "pass badly": m.passBadly, "pass badly on": m.passBadly, "pass both": m.passBoth,
		"pass and cancel": m.passAndCancel, "come to rest": m.comeToRest,
		"push base": m.pushBase, "push head": m.pushHead, "merge by hand": m.mergeByHand, "delete branch": m.deleteBranch,
		"restore branch": m.restoreBranch,
		"reconcile":      m.reconcile, "let expire": m.letExpire,
	}
}

func (m *walk) hostRepo(repoID string) codehost.Repo {
	return builtIn(m.account, repoNames[slices.Index(m.repos, repoID)])
}

func (pr *pullRow) open() bool { return pr.State == record.Open }

// pickPull is one of some pull requests.
func (m *walk) pickPull(of func(*pullRow) bool) *pullRow {
	var found []*pullRow
	for i := range m.was.pulls {
		if of(&m.was.pulls[i]) {
			found = append(found, &m.was.pulls[i])
		}
	}
	if len(found) == 0 {
		panic(idle{})
	}
	return one(m, found, "pull")
}

// anyPull is an open pull request, as a rule.
func (m *walk) anyPull() *pullRow {
	if rapid.IntRange(0, 9).Draw(m.r, "ended") == 7 {
		return m.pickPull(func(*pullRow) bool { return true })
	}
	return m.pickPull((*pullRow).open)
}

// pickLiveOf is an attempt of some kinds that lives, which may have to be
// claimed first.
func (m *walk) pickLiveOf(kinds ...string) *attempt {
	if a := m.liveOf(kinds); a != nil {
		return a
	}
	m.claimOne()
	if a := m.liveOf(kinds); a != nil {
		return a
	}
	panic(idle{})
}

func (m *walk) liveOf(kinds []string) *attempt {
	var live []*attempt
	for _, a := range m.attempts {
		if m.alive(a) && slices.Contains(kinds, a.start.Kind) {
			live = append(live, a)
		}
	}
	if len(live) == 0 {
		return nil
	}
	return one(m, live, "live")
}

// stack files two tasks that work on the same file, one of which begins on top of
// the other if that is a pull request by then, and has boxes at them.
func (m *walk) stack() {
	if m.disabled[m.repos[2]] || m.filed() >= 20 {
		panic(idle{})
	}
	for range 2 {
		m.call(m.on(), "POST", "/v1/tasks",
			map[string]any{"repo": m.account + "/" + repoNames[2], "title": "Fix it", "problem": "It is broken.",
				"priority": 100, "files": []string{"a.go"}, "labels": map[string]string{"n": "stacked"}})
		m.check()
		m.hasten()
	}
}

// dropBelow cancels work that other work was begun on top of, and has somebody
// order the merge of that.
func (m *walk) dropBelow() {
	pr := m.pickPull(func(pr *pullRow) bool {
		on := m.was.tasks[*pr.TaskID].StackedOn
		return pr.open() && on != nil && !m.was.tasks[*on].Status.Terminal()
	})
	m.must(m.on(), 200, "POST", "/v1/tasks/"+*m.was.tasks[*pr.TaskID].StackedOn+"/cancel", map[string]any{})
	m.call(m.on(), "POST", "/v1/prs/"+pr.ID+"/merge", map[string]any{"head_sha": pr.HeadSHA})
}

// hasten has boxes do a good deal of work at once.
func (m *walk) hasten() {
	for range rapid.IntRange(1, 3).Draw(m.r, "turns") {
		for _, b := range m.boxes {
			m.claimAs(m.on(), b, id.New())
		}
		m.check()
		for _, a := range m.attempts {
			if !m.alive(a) || m.spent(a) {
				continue
			}
			m.bring(a)
			m.check()
		}
	}
}

// bring has an attempt bring what it was sent for: commits, a plan, or how a
// check went.
func (m *walk) bring(a *attempt) {
	code := func(n int) *int { return &n }
	switch a.start.Kind {
	case task.KindScout:
		m.end(a, protocol.Finished{State: protocol.Succeeded, Report: m.report()})
	case task.KindCI:
		m.end(a, one(m, []protocol.Finished{
			{State: protocol.Succeeded, ExitCode: code(0)}, {State: protocol.Succeeded, ExitCode: code(1), Output: "broken"},
			{State: protocol.Succeeded, ExitCode: code(0)},
			{State: protocol.Failed, Kind: task.CheckoutFailed, Error: "gone"}, {State: protocol.Succeeded},
			{State: protocol.Succeeded, ExitCode: code(2)},
		}, "result"))
	case task.KindBabysit:
		m.repaired(a)
	default:
		m.pushed(a)
	}
}

func (m *walk) deliver() { m.bring(m.pickLiveOf(task.KindWork, task.KindScout)) }

func (m *walk) checkEnds() { m.bring(m.pickLiveOf(task.KindCI)) }

func (m *walk) repair() { m.bring(m.pickLiveOf(task.KindBabysit)) }

// pushed has an attempt push a commit and end.
func (m *walk) pushed(a *attempt) {
	r := m.repoOf(a)
	base := m.forge.at(r, a.start.Branch)
	if base == "" {
		base = m.forge.at(r, "main")
	}
	tip := m.forge.push(r, a.start.Branch, a.start.Base)
	if rapid.IntRange(0, 4).Draw(m.r, "guarded") == 3 {
		m.forge.guard(r, tip)
	}
	if rapid.IntRange(0, 5).Draw(m.r, "clashes") == 3 {
		m.forge.clash(r, tip, true)
	}
	if rapid.IntRange(0, 3).Draw(m.r, "heard of") > 0 {
		m.tellOn(m.on(), r, "run:"+a.start.Run, a.start.Branch)
	}
	m.end(a, protocol.Finished{State: protocol.Succeeded, Tip: tip, Base: base, Report: "Done."})
}

func (m *walk) repoOf(a *attempt) codehost.Repo {
	owner, name, _ := strings.Cut(a.start.Repo, "/")
	return builtIn(owner, name)
}

// repaired ends a round: with a commit, with nothing to add, or without.
func (m *walk) repaired(a *attempt) {
	switch rapid.IntRange(0, 3).Draw(m.r, "repair") {
	case 0:
		at := m.forge.at(m.repoOf(a), a.start.Branch)
		m.end(a, protocol.Finished{State: protocol.Succeeded, Tip: at, Base: at, Report: "Nothing to do."})
	case 1:
		m.end(a, protocol.Finished{State: protocol.Failed, Kind: task.PolicyRefused, Error: "no"})
	default:
		m.pushed(a)
	}
}

// decide says something about a head: the one that there is, as a rule.
func (m *walk) decide() {
	pr := m.anyPull()
	if asked := m.was.pullsWith(record.ActionPending); len(asked) > 0 && rapid.Bool().Draw(m.r, "asked") {
		pr = one(m, asked, "question")
	}
	verb := one(m, []string{"approve-pending", "merge", "skip-pending", "ask-again"}, "verb")
	head := pr.HeadSHA
	if rapid.IntRange(0, 9).Draw(m.r, "stale") == 7 {
		head = strings.Repeat("f", 40)
	}
	a := m.was.openAction(pr.ID)
	body := map[string]any{"head_sha": head}
	names := a != nil && rapid.IntRange(0, 3).Draw(m.r, "names") > 0
	if names && verb != "ask-again" {
		body["action_id"] = a.ID
	}
	statuses, outs := m.both("POST", "/v1/prs/"+pr.ID+"/"+verb, body)
	unread := waitsFor(a, m.now()) && a.Guarded && !names && verb != "skip-pending" &&
		verb != "ask-again" // nobody says yes to what is protected without naming the question
	green := pr.Checks == record.ChecksNone || pr.Checks == record.ChecksPassed
	waits := waitsFor(a, m.now())
	did := 0
	for i, status := range statuses {
		switch {
		case status != 200 && status != 409:
			m.fail("%s of %+v: %d %v", verb, pr, status, outs[i])
		case status == 200 && outs[i]["action"].(map[string]any)["head_sha"] != pr.HeadSHA:
			m.fail("%s of %+v answers %v", verb, pr, outs[i])
		case status == 200:
			did++
		}
	}
	want := 0
	switch {
	case head != pr.HeadSHA || !pr.open() || unread:
	case verb == "approve-pending" || verb == "skip-pending":
		if waits {
			want = 1
		}
	case green:
		want = 2
	}
	if want == 2 && did == 1 { // the first has brought up a question that names more
		now := m.read()
		if b := now.openAction(pr.ID); b != nil && (a == nil || b.ID != a.ID) && b.State == record.ActionPending && b.Guarded {
			want = 1
		}
	}
	if did != want {
		m.fail("%s of head %s of %+v with %+v was done %d times, want %d: %v", verb, head, pr, a, did, want, outs)
	}
	m.seen[verb] += did
}

// waitsFor tells whether an action is a question that waits for an answer.
func waitsFor(a *actionRow, now time.Time) bool {
	return a != nil && a.State == record.ActionPending && now.Before(a.ExpiresAt)
}

func (m *walk) rearm() {
	pr := m.anyPull()
	status, out := m.call(m.on(), "POST", "/v1/prs/"+pr.ID+"/rearm-babysit", map[string]any{"reason": "Once more."})
	if (status == 202) != (pr.open() && !m.disabled[pr.RepoID]) || status != 202 && status != 409 {
		m.fail("rearm of %+v answers %d %v", pr, status, out)
	}
	if status == 202 {
		m.owe("pr.babysit_rearmed", pr.ID)
	}
}

// oblige does what a pull request says that a person has to do.
func (m *walk) oblige() {
	m.obligeOf(m.pickPull(func(pr *pullRow) bool { return pr.open() && pr.Needs != "" }))
}

func (m *walk) obligeOf(pr *pullRow) {
	n := m.on()
	need, _ := m.must(n, 200, "GET", "/v1/prs/"+pr.ID, nil)["needs_person"].(map[string]any)
	if need == nil || need["why"] != pr.Needs || need["since"] == nil || need["clears_when"] == "" {
		m.fail("%+v says that it needs %v", pr, need)
	}
	switch {
	case need["capability"] == nil: // it ends elsewhere
		return
	case pr.Needs == record.NeedsEnable:
		m.turnRepo(pr.RepoID, true)
		return
	}
	status, out := m.invoke(n, need)
	if status == 409 {
		a := m.was.openAction(pr.ID)
		late := a != nil && !m.now().Before(a.ExpiresAt) // nobody has noted yet that it has expired
		if !late && !m.disabled[pr.RepoID] {
			m.fail("%+v needs %v, which answers %v", pr, need, out)
		}
		return
	}
	now := m.read()
	after, a, b := now.pull(pr.ID), m.was.openAction(pr.ID), now.openAction(pr.ID)
	same := a == nil && b == nil || a != nil && b != nil && a.ID == b.ID && a.State == b.State
	if same && after.Needs == pr.Needs && after.State == pr.State && after.Babysit == pr.Babysit {
		m.fail("%+v needs %v, and that changes nothing: %+v", pr, need, after)
	}
	m.seen["obliged "+pr.Needs]++
}

// invoke calls a capability that is named with its arguments.
func (m *walk) invoke(n *node, c map[string]any) (int, map[string]any) {
	for _, o := range n.parts.ops("") {
		if o.ID != c["capability"] {
			continue
		}
		path, body := o.Path, map[string]any{}
		for name, v := range c["args"].(map[string]any) {
			if filled := strings.Replace(path, "{"+name+"}", v.(string), 1); filled != path {
				path = filled
			} else {
				body[name] = v
			}
		}
		if o.ID == "pr.rearm_babysit" {
			body["reason"] = "It may do by now."
		}
		status, out := m.call(n, o.Method, path, body)
		if o.ID == "pr.rearm_babysit" && status == 202 {
			m.owe("pr.babysit_rearmed", path[len("/v1/prs/"):len(path)-len("/rearm-babysit")])
		}
		if status >= 300 && status != 409 {
			m.fail("%v answers %d %v", c, status, out)
		}
		return status, out
	}
	m.fail("there is no capability %v", c)
	return 0, nil
}

// cancelWithPull cancels a task whose work is a pull request.
func (m *walk) cancelWithPull() {
	if rapid.IntRange(0, 3).Draw(m.r, "spared") < 3 {
		panic(idle{}) // of one that is cancelled there is less to see
	}
	pr := m.anyPull()
	m.must(m.on(), 200, "POST", "/v1/tasks/"+*pr.TaskID+"/cancel", map[string]any{})
}

func (m *walk) passOn(n *node) {
	part[*ci.Service](n).Pass(context.Background())
	m.pullsOn(context.Background(), n)
}

// pullsOn has a node move pull requests on, and carry out the merges that are ordered.
func (m *walk) pullsOn(ctx context.Context, n *node) {
	part[*pull.Service](n).Pass(ctx)
	if err := n.due.Drain(ctx, "merges", "intents"); err != nil && ctx.Err() == nil {
		m.fail("what is due: %v", err)
	}
}

func (m *walk) passOne() {
	m.elapse(rapid.SampledFrom([]time.Duration{0, time.Second, 20 * time.Second, 2 * time.Minute}).Draw(m.r, "after"))
	m.passOn(m.on())
}

// passBoth has both nodes carry out what is due, at the same moment.
func (m *walk) passBoth() {
	m.elapse(20 * time.Second)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { m.passOn(m.nodes[i]) })
	}
	wg.Wait()
}

// passAndCancel has a task cancelled while its pull request is merged, perhaps.
func (m *walk) passAndCancel() {
	ordered := m.was.pullsWith(record.ActionApproved)
	if len(ordered) == 0 {
		panic(idle{})
	}
	pr := one(m, ordered, "order")
	m.elapse(20 * time.Second)
	var wg sync.WaitGroup
	wg.Go(func() { m.passOn(m.nodes[0]) })
	m.must(m.nodes[1], 200, "POST", "/v1/tasks/"+*pr.TaskID+"/cancel", map[string]any{})
	wg.Wait()
	m.race[pr.ID] = true
}

// passBadly is a pass during which something happens to a merge.
func (m *walk) passBadly() {
	ordered := m.was.pullsWith(record.ActionApproved)
	if len(ordered) == 0 {
		panic(idle{})
	}
	due := one(m, ordered, "order")
	i := rapid.IntRange(0, 1).Draw(m.r, "which")
	n, r := m.nodes[i], m.hostRepo(due.RepoID)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	what := rapid.SampledFrom([]string{"refuses", "refuses for long", "forgets", "dies before", "dies after", "base moves", "head moves",
		"head moves late", "deleted"}).Draw(m.r, "mishap")
	m.elapse(rapid.SampledFrom([]time.Duration{0, 20 * time.Second, 2 * time.Minute}).Draw(m.r, "after"))
	var mis mishap
	switch what {
	case "refuses for long":
		for range 6 {
			m.forge.mishap = mishap{refuse: errors.New("no room on the disk")}
			m.passOn(n)
			m.check()
			m.elapse(2 * time.Minute)
		}
	case "refuses":
		mis.refuse = errors.New("no room on the disk")
	case "forgets":
		mis.forget = errors.New("the connection was lost")
	case "dies before":
		mis.refuse, mis.before = context.Canceled, cancel
	case "dies after":
		mis.forget, mis.after = context.Canceled, cancel
	case "base moves":
		mis.before = func() { m.forge.push(r, "main", ""); m.tellOn(m.nodes[1-i], r, "git", "main") }
	case "head moves":
		mis.before = func() { m.forge.push(r, due.HeadRef, due.HeadSHA); m.tellOn(m.nodes[1-i], r, "git", due.HeadRef) }
	case "head moves late":
		mis.after = func() { m.forge.push(r, due.HeadRef, due.HeadSHA); m.tellOn(m.nodes[1-i], r, "git", due.HeadRef) }
	case "deleted":
		mis.before = func() { m.forge.set(r, due.HeadRef, ""); m.tellOn(m.nodes[1-i], r, "git", due.HeadRef) }
	}
	m.forge.mishap = mis
	m.pullsOn(ctx, n)
	if m.forge.mishap = (mishap{}); ctx.Err() != nil {
		m.nodes[i] = m.boot(n.db) // what it had set aside for calls is given up
	}
	m.seen["merge: "+what]++
}

// comeToRest has both nodes do what is due until nothing is, and wants that to
// be true which is not while something goes on.
func (m *walk) comeToRest() {
	m.reconcileOn(m.on())
	m.check()
	for range 2 {
		for _, n := range m.nodes {
			m.passOn(n)
			m.check()
		}
	}
	m.rested()
}
