package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/task"
)

// holds returns why no online box can claim the pending task t; none if one can.
func (f *facts) holds(t *task.Row) []task.Hold {
	out := f.own(t)
	need, ok := f.need(t)
	if !ok {
		return out
	}
	if h := f.known(t, need); h != nil {
		out = append(out, *h)
		last := &out[len(out)-1]
		last.Since = latest(t.QueuedAt, last.Since)
	}
	return out
}

// retryNow returns the call that ends the wait of a task before its next try; nil for a
// row that stands for several tasks.
func retryNow(t *task.Row) *task.Clear {
	if t.ID == "" {
		return nil
	}
	return &task.Clear{Capability: "task.retry_now", Args: map[string]string{"id": t.ID}}
}

// setTemplate returns the call that changes the template of a task.
func setTemplate(t *task.Row) *task.Clear {
	return &task.Clear{Capability: "template.set", Args: map[string]string{"name": t.Template}}
}

// demand is what decides the answer of facts.fleet.
type demand struct {
	agent, isolation string
	by               string // who asked for the task, if a box of a member serves the account
	repo             string // the repository, if a box can carry out no run of it, or is lent to some
}

// known is fleet, which is asked once for all tasks with the same demand.
func (f *facts) known(t *task.Row, n Need) *task.Hold {
	key := demand{agent: n.Agent, isolation: n.Isolation}
	if t.RequestedBy != nil && slices.ContainsFunc(f.Boxes, func(b Box) bool { return b.Target == "user" }) {
		key.by = *t.RequestedBy
	}
	repo := f.repoName(t)
	if slices.ContainsFunc(f.Boxes, func(b Box) bool { return b.UnfitFor[repo] != "" || b.Target == fleet.Lent }) {
		key.repo = repo
	}
	h, ok := f.answers[key]
	if !ok {
		if h = f.fleet(t, n); f.answers == nil {
			f.answers = map[demand]*task.Hold{}
		}
		f.answers[key] = h
	}
	return h
}

// hold is that of a task every key of which rests.
func (r Rest) hold(t *task.Row) task.Hold {
	return task.Hold{
		Reason: task.HoldKey, Since: latest(t.QueuedAt, r.Since), Blocking: true, Passes: r.Passes,
		ClearsWhen: "the first of the keys that fit serves again, which is tried at " + r.Until.UTC().Format(time.RFC3339) + " (" + r.Why +
			"), or the account has another",
		Clear: &task.Clear{Capability: "billing.key_add", Args: map[string]string{}},
	}
}

// goneWords say why a code host does not let the server at a repository, by repo.Ref.Gone.
var goneWords = map[string]string{
	"removed":   "the App is not installed for any more",
	"suspended": "belongs to an installation that is suspended",
	"deleted":   "was deleted there",
	"archived":  "is archived there",
	"moved":     "belongs to somebody else there",
}

// own returns the holds of the task that do not depend on boxes.
func (f *facts) own(t *task.Row) []task.Hold {
	var out []task.Hold
	add := func(reason string, since time.Time, when string, c *task.Clear) {
		out = append(out, task.Hold{Reason: reason, Since: latest(t.QueuedAt, since), Blocking: true, ClearsWhen: when, Clear: c})
	}
	if t.WaitingDeps > 0 {
		add(task.HoldDependencies, t.QueuedAt, "the tasks it depends on succeed", nil)
	}
	if t.NotBefore.After(f.Now) {
		at := t.NotBefore.Truncate(time.Second).Format(time.RFC3339)
		add(task.HoldBackoff, t.UpdatedAt, "the wait before the next try is over, at "+at+", or somebody ends it", retryNow(t))
	}
	if t.ConflictWith != nil {
		when := "the task " + *t.ConflictWith + ", which works on the same files, is merged or ends"
		if len(t.ConflictPaths.V) > 0 {
			when = "the task " + *t.ConflictWith + ", which works on " + strings.Join(t.ConflictPaths.V, ", ") + " too, is merged or ends"
		}
		add(task.HoldConflict, timeOr(t.ConflictAt), when, nil)
	}
	for _, o := range f.Behind[t.ID] {
		out = append(out, o.holdFrom(t.QueuedAt))
	}
	if r, off := f.Disabled[t.RepoID]; off && r.Gone != "" {
		add(task.HoldRepo, r.HeldAt, "the code host lets the server at the repository again, which "+goneWords[r.Gone], nil)
	} else if off && r.Enabled {
		add(task.HoldRepo, r.HeldAt, "the owner of the repository grants the App of this server the permission "+r.Lacks, nil)
	} else if off {
		add(task.HoldRepo, r.HeldAt, "the repository is enabled",
			&task.Clear{Capability: "project.update", Args: map[string]string{"owner": r.Owner, "repo": r.Name, "enabled": "true"}})
	}
	if r := f.repos[t.RepoID]; r.Enabled && r.Unborn {
		add(task.HoldRepo, t.QueuedAt, "somebody pushes a first commit to its default branch "+r.DefaultBranch+", which has none yet", nil)
	} else if r.Enabled && r.InTheWay != "" && pushes(t.Kind) {
		add(task.HoldRepo, t.QueuedAt, "the branch "+r.InTheWay+" of the repository is deleted or renamed: "+
			"git cannot have the branches svc/… of agents beside it", nil)
	}
	if r := f.repos[t.RepoID]; r.Enabled && r.Uncovered {
		add(task.HoldPlan, r.UncoveredAt, "the account is verified as an open-source project, pays for seats (billing.checkout), or an operator of the "+
			"server gives it a tier that covers private repositories (account.set_tier)",
			&task.Clear{Capability: "account.oss_verification_apply", Args: map[string]string{}})
	}
	switch n, ok := f.need(t); {
	case !ok:
		add(task.HoldTemplate, t.QueuedAt, "its agent template exists again", setTemplate(t))
	case n.WrongProvider != "":
		add(task.HoldKey, n.LackAt, "its template names a provider that its agent "+n.Agent+" can use, which "+n.WrongProvider+" is not",
			setTemplate(t))
	case n.lacksKey(t.RepoID):
		add(task.HoldKey, n.LackAt, "the account has a key "+n.NoKey,
			&task.Clear{Capability: "billing.key_add", Args: map[string]string{}})
	case n.NoModel:
		add(task.HoldModel, n.LackAt, "its template names a model: the provider of the key has none of its own", setTemplate(t))
	default:
		if r, ok := n.rests(t); ok {
			out = append(out, r.hold(t))
		}
	}
	if t.Kind != task.KindCI && f.InFlight >= f.Seats {
		add(task.HoldSeats, f.LastClaim, "a running task ends or the account gets more seats", nil)
	}
	return out
}

// fleet returns why no box can take t, and since when at the earliest; nil if a box
// can. The reason is that of the boxes that meet most demands.
func (f *facts) fleet(t *task.Row, n Need) *task.Hold {
	hold := func(reason string, since time.Time, when string, c *task.Clear) *task.Hold {
		return &task.Hold{Reason: reason, Since: since, Blocking: true, ClearsWhen: when, Clear: c}
	}
	var online, enrolled, fit, agent, isolated []Box
	var beat, claim time.Time
	for _, b := range f.Boxes {
		if !b.serves(t) {
			continue
		}
		beat = latest(beat, b.LastBeat)
		if b.Online {
			online = append(online, b)
		}
	}
	for _, b := range online {
		if b.Enrolled {
			enrolled = append(enrolled, b)
		}
	}
	for i, b := range enrolled {
		b.Unfit = cmp.Or(b.Unfit, b.UnfitFor[f.repoName(t)])
		enrolled[i] = b
		if b.takesWork() {
			fit = append(fit, b)
		}
	}
	for _, b := range fit {
		if b.hasAgent(n) {
			agent = append(agent, b)
		}
	}
	for _, b := range agent {
		if !b.isolates(n) {
			continue
		}
		isolated = append(isolated, b)
		claim = latest(claim, b.LastClaim)
		if b.Busy < b.Slots {
			return nil
		}
	}
	switch {
	case len(online) == 0:
		return hold(task.HoldNoBox, beat, "a box that serves this account comes online",
			&task.Clear{Capability: "box.add", Args: map[string]string{}})
	case len(enrolled) == 0:
		return hold(task.HoldDraining, time.Time{}, "a box that is not draining comes online", resumed(t.AccountID, online))
	case len(fit) == 0:
		return hold(task.HoldUnfit, time.Time{}, repaired(t.AccountID, enrolled), nil)
	case len(agent) == 0:
		return hold(task.HoldAgent, time.Time{}, installed(t.AccountID, n.Agent, fit), nil)
	case len(isolated) == 0:
		how := "can isolate it with " + n.Isolation + ", and has tried that this holds"
		switch isolationRank[n.Isolation] {
		case isolationRank["none"]:
			how = "says how it isolates agents"
		case isolationRank[Best]:
			how = "isolates agents, or the policy file or the template says isolation: none"
		}
		return hold(task.HoldIsolation, time.Time{}, "an online box that has the agent "+n.Agent+" "+how, nil)
	}
	return hold(task.HoldBusy, claim, "a box has a free slot", nil)
}

// installed says what has to be installed, and where. Details of a box are shown to the
// account that enrolled the box, and to no other.
func installed(account, agent string, fit []Box) string {
	for _, b := range fit {
		if lacks := b.Missing[agent]; lacks != "" && b.AccountID == account {
			return "an online box has the agent " + agent + "; on the box " + b.Name + ", " + lacks
		}
	}
	return "an online box has the agent " + agent + ": `yardmaster box agents`, called on a box, says how it gets it"
}

// resumed returns the call that has a draining box of the account take work again; nil
// if none of the boxes is the account's own.
func resumed(account string, draining []Box) *task.Clear {
	for _, b := range draining {
		if b.AccountID == account {
			return &task.Clear{Capability: "box.drain", Args: map[string]string{"id": b.ID, "resume": "true"}}
		}
	}
	return nil
}

// repaired says which of the unfit boxes have to be repaired. The fault of a box is
// shown to the account that enrolled the box, and to no other.
func repaired(account string, unfit []Box) string {
	own := slices.DeleteFunc(slices.Clone(unfit), func(b Box) bool { return b.AccountID != account })
	if len(own) == 0 {
		return "the fault of a box that another account has enrolled is repaired"
	}
	first := slices.MinFunc(own, func(a, b Box) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	if more := len(unfit) - 1; more > 0 {
		return fmt.Sprintf("the fault of one of %d boxes is repaired; the fault of the box %s: %s", more+1, first.Name, first.Unfit)
	}
	return fmt.Sprintf("the fault of the box %s is repaired: %s", first.Name, first.Unfit)
}

// fits tells whether the box may claim t now. An online box fits exactly if holds
// returns no hold.
func (f *facts) fits(b *Box, t *task.Row) bool {
	n, ok := f.need(t)
	return ok && b.takesWork() && b.UnfitFor[f.repoName(t)] == "" &&
		b.Busy < b.Slots && b.serves(t) && b.hasAgent(n) && b.isolates(n) && len(f.own(t)) == 0
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// pushes tells whether tasks of a kind push branches of their own.
func pushes(kind string) bool { return kind != task.KindCI && kind != task.KindReview }
