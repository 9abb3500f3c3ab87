package task

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/protocol"
)

// Hold is one reason why a task is not being worked on. A blocking hold
// alone keeps every box from claiming it.
type Hold struct {
	_          struct{}  `doc:"One reason why a task is not being worked on."`
	Reason     string    `json:"reason" example:"no_box_online" doc:"slug of the reason: for a pending task such as no_box_online, boxes_busy, waiting_dependencies or retry_backoff, for a held one the failure_kind that parked it"`
	Since      time.Time `json:"since" doc:"when it began to hold the task"`
	Blocking   bool      `json:"blocking" doc:"whether it keeps every box from claiming the task; others only say what it is behind"`
	ClearsWhen string    `json:"clears_when" example:"a box of the account comes online" doc:"what has to happen for it to end, in words"`
	Clear      *Clear    `json:"clear" doc:"the call that clears it; null when it only clears by itself"`
}

// Clear names a capability and its arguments.
type Clear struct {
	_          struct{}          `doc:"The call that ends a hold."`
	Capability string            `json:"capability" example:"project.update" doc:"id of the capability to call"`
	Args       map[string]string `json:"args" example:"{\"owner\":\"acme\",\"repo\":\"web\",\"enabled\":\"true\"}" doc:"its arguments"`
}

// Reasons of holds.
const (
	HoldDependencies = "waiting_dependencies"
	HoldBackoff      = "retry_backoff"
	HoldRepo         = "repo_disabled"
	HoldTemplate     = "template_missing"
	HoldKey          = "no_credential"
	HoldModel        = "model_unavailable"
	HoldSeats        = "seats_exhausted"
	HoldNoBox        = "no_box_online"
	HoldDraining     = "boxes_draining"
	HoldUnfit        = BoxUnfit // of all boxes that take work
	HoldAgent        = "agent_not_installed"
	HoldIsolation    = "isolation_unavailable"
	HoldBusy         = "boxes_busy"
	HoldConflict     = "conflict"
	HoldPerson       = "waiting_person" // beside one of the above: what it waits for waits for a person
	HoldNeeds        = "needs_person"   // its pull request does
)

// personClears are the holds that no passing of time ends.
var personClears = []string{HoldRepo, HoldTemplate, HoldKey, HoldModel, HoldNoBox, HoldDraining, HoldUnfit, HoldAgent, HoldIsolation, HoldPerson, HoldNeeds}

// stuckBehindPerson is how long a task may wait for a person before it counts
// as stuck.
const stuckBehindPerson = time.Hour

// Box is a box as the queue sees it.
type Box struct {
	ID        string
	Name      string
	AccountID string // where it is enrolled
	Target    string // shared, org or user
	OwnerID   string // the account or user it serves; empty when shared
	Enrolled  bool   // neither draining nor revoked
	Online    bool
	Left      bool   // it was stopped, and has not come back
	Unfit     string // why it can carry out no run; empty if it can
	Slots     int64
	Busy      int64 // tasks it holds
	Agents    []string
	Missing   map[string]string   // what keeps other agents on it from being used, by their names
	Isolation []string            // the levels that its sandbox has
	Holds     map[string][]string // what each of them held when it was last tried
	LastBeat  time.Time
	LastClaim time.Time
}

// Need is what a task demands of a box. The agents builtin and command come
// with every box.
type Need struct {
	Agent     string
	Isolation string // the least acceptable: bubblewrap, landlock, best, none; empty is best
	NoKey     string // what key the account lacks for it, behind "a key"; empty: none
	// WrongProvider is the one that its template names, if the agent cannot ask it.
	WrongProvider string
	NoModel       bool // nothing names a model: neither the template nor the provider of its key
}

// Best is the demand of whoever names no level: the best that the box has, but
// none only on a member's own box.
const Best = "best"

var isolationRank = map[string]int{"none": 0, "": 1, Best: 1, "landlock": 2, "bubblewrap": 3}

func (b *Box) serves(t *Row) bool {
	return b.Target != "user" || t.RequestedBy != nil && *t.RequestedBy == b.OwnerID
}

// takesWork tells whether the box is to be given new work at all.
func (b *Box) takesWork() bool { return b.Enrolled && b.Unfit == "" && !b.Left }

func (b *Box) hasAgent(n Need) bool {
	return n.Agent == "builtin" || n.Agent == "command" || slices.Contains(b.Agents, n.Agent)
}

// isolates tells whether agents can be held as the task demands. A level that
// does not hold what its name promises is better than none, and satisfies nobody
// who demands it. A box that has not said what it offers offers nothing, not
// even none.
func (b *Box) isolates(n Need) bool {
	best := -1
	for _, level := range b.Isolation {
		rank := isolationRank[level]
		if !protocol.Keeps(level, b.Holds[level]) {
			rank = min(rank, isolationRank[Best])
		}
		best = max(best, rank)
	}
	least := isolationRank[n.Isolation]
	if b.Target == "user" && least == isolationRank[Best] {
		least = isolationRank["none"]
	}
	return best >= least
}

// Facts is everything about an account that decides whether its pending tasks
// can be claimed.
type Facts struct {
	Now       time.Time
	Seats     int64
	InFlight  int64     // tasks that occupy a seat
	LastClaim time.Time // of those, the newest
	Boxes     []Box     // that serve the account
	Disabled  map[string]Repo
	Needs     map[string]Need       // by template; a template that is gone is missing
	Least     map[string]string     // by repository: the least isolation its policy accepts
	Conflicts map[string]string     // by repository: what its policy says about them
	Behind    map[string][]obstacle // by task: what it waits for that waits for a person

	repos   map[string]Repo  // all that were learnt of
	answers map[demand]*Hold // of the fleet, which stays as it is

	held int        // tasks that this claim held back
	ask  []question // what the code host has to be asked before more can be said
}

func (f *Facts) need(t *Row) (Need, bool) {
	n, ok := Need{Agent: "command"}, true
	if t.Kind != KindCI {
		n, ok = f.Needs[t.Template]
	}
	n.Isolation = Stricter(n.Isolation, f.Least[t.RepoID])
	return n, ok
}

// Stricter is the more demanding of two least isolations. One that names no
// level leaves it to the other.
func Stricter(a, b string) string {
	switch unnamed := isolationRank[Best]; {
	case isolationRank[a] == unnamed:
		return cmp.Or(b, Best)
	case isolationRank[b] == unnamed, isolationRank[a] >= isolationRank[b]:
		return a
	}
	return b
}

// holds answers why no online box can claim the pending task t; none if one can.
func (f *Facts) holds(t *Row) []Hold {
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

// retryNow is the call that ends the wait of a task before its next try. What
// stands for several tasks has none.
func retryNow(t *Row) *Clear {
	if t.ID == "" {
		return nil
	}
	return &Clear{Capability: "task.retry_now", Args: map[string]string{"id": t.ID}}
}

// demand is what the fleet answers to.
type demand struct {
	Need
	by string // who asked for the task, where that matters
}

// known is fleet, found out once for all tasks that demand the same.
func (f *Facts) known(t *Row, n Need) *Hold {
	key := demand{Need: n}
	if slices.ContainsFunc(f.Boxes, func(b Box) bool { return b.Target == "user" }) {
		key.by = deref(t.RequestedBy)
	}
	h, ok := f.answers[key]
	if !ok {
		if h = f.fleet(t, n); f.answers == nil {
			f.answers = map[demand]*Hold{}
		}
		f.answers[key] = h
	}
	return h
}

// own answers the holds that concern the task whatever box asks.
func (f *Facts) own(t *Row) []Hold {
	var out []Hold
	add := func(reason string, since time.Time, when string, c *Clear) {
		out = append(out, Hold{Reason: reason, Since: latest(t.QueuedAt, since), Blocking: true, ClearsWhen: when, Clear: c})
	}
	if t.WaitingDeps > 0 {
		add(HoldDependencies, t.QueuedAt, "the tasks it depends on succeed", nil)
	}
	if t.NotBefore.After(f.Now) {
		add(HoldBackoff, t.UpdatedAt, "the wait before the next try is over, at "+t.NotBefore.Truncate(time.Second).Format(time.RFC3339)+", or somebody ends it", retryNow(t))
	}
	if t.ConflictWith != nil {
		when := "the task " + *t.ConflictWith + ", which works on the same files, is merged or ends"
		if len(t.ConflictPaths.V) > 0 {
			when = "the task " + *t.ConflictWith + ", which works on " + strings.Join(t.ConflictPaths.V, ", ") + " too, is merged or ends"
		}
		add(HoldConflict, timeOr(t.ConflictAt), when, nil)
	}
	for _, o := range f.Behind[t.ID] {
		out = append(out, o.behindIt(t.QueuedAt))
	}
	if r, off := f.Disabled[t.RepoID]; off {
		add(HoldRepo, t.QueuedAt, "the repository is enabled",
			&Clear{Capability: "project.update", Args: map[string]string{"owner": r.Owner, "repo": r.Name, "enabled": "true"}})
	}
	switch n, ok := f.need(t); {
	case !ok:
		add(HoldTemplate, t.QueuedAt, "its agent template exists again", &Clear{Capability: "template.set", Args: map[string]string{"name": t.Template}})
	case n.WrongProvider != "":
		add(HoldKey, t.QueuedAt, "its template names a provider that its agent "+n.Agent+" can use, which "+n.WrongProvider+" is not", &Clear{Capability: "template.set", Args: map[string]string{"name": t.Template}})
	case n.NoKey != "":
		add(HoldKey, t.QueuedAt, "the account has a key "+n.NoKey, &Clear{Capability: "billing.key_add", Args: map[string]string{}})
	case n.NoModel:
		add(HoldModel, t.QueuedAt, "its template names a model: the provider of the key has none of its own", &Clear{Capability: "template.set", Args: map[string]string{"name": t.Template}})
	}
	if t.Kind != KindCI && f.InFlight >= f.Seats {
		add(HoldSeats, f.LastClaim, "a running task ends or the account gets more seats", nil)
	}
	return out
}

// fleet answers why no box can take t, and since when at the earliest, looking
// at the boxes that come closest.
func (f *Facts) fleet(t *Row, n Need) *Hold {
	hold := func(reason string, since time.Time, when string, c *Clear) *Hold {
		return &Hold{Reason: reason, Since: since, Blocking: true, ClearsWhen: when, Clear: c}
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
	for _, b := range enrolled {
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
		return hold(HoldNoBox, beat, "a box that serves this account comes online", &Clear{Capability: "box.add", Args: map[string]string{}})
	case len(enrolled) == 0:
		return hold(HoldDraining, time.Time{}, "a box that is not draining comes online", resumed(t.AccountID, online))
	case len(fit) == 0:
		return hold(HoldUnfit, time.Time{}, repaired(t.AccountID, enrolled), nil)
	case len(agent) == 0:
		return hold(HoldAgent, time.Time{}, installed(t.AccountID, n.Agent, fit), nil)
	case len(isolated) == 0:
		how := "can isolate it with " + n.Isolation + ", and has tried that this holds"
		switch isolationRank[n.Isolation] {
		case isolationRank["none"]:
			how = "says how it isolates agents"
		case isolationRank[Best]:
			how = "isolates agents, or the policy file or the template says isolation: none"
		}
		return hold(HoldIsolation, time.Time{}, "an online box that has the agent "+n.Agent+" "+how, nil)
	}
	return hold(HoldBusy, claim, "a box has a free slot", nil)
}

// installed says what has to be installed, and where. What is on the machine of
// another account is shown to that account only.
func installed(account, agent string, fit []Box) string {
	for _, b := range fit {
		if lacks := b.Missing[agent]; lacks != "" && b.AccountID == account {
			return "an online box has the agent " + agent + "; on the box " + b.Name + ", " + lacks
		}
	}
	return "an online box has the agent " + agent + ": `yardmaster box agents`, called on a box, says how it gets it"
}

// resumed is the call that has an account's own box, of some that drain, take
// work again.
func resumed(account string, draining []Box) *Clear {
	for _, b := range draining {
		if b.AccountID == account {
			return &Clear{Capability: "box.drain", Args: map[string]string{"id": b.ID, "resume": "true"}}
		}
	}
	return nil
}

// repaired says which of the boxes, all of them unfit, have to be fit again. What
// ails a machine of another account is shown to that account only.
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

// fits tells whether the box may claim t at this moment. For online boxes it
// agrees with holds: one of them fits exactly if there is no hold.
func (f *Facts) fits(b *Box, t *Row) bool {
	n, ok := f.need(t)
	return ok && b.takesWork() && b.Busy < b.Slots && b.serves(t) && b.hasAgent(n) && b.isolates(n) && len(f.own(t)) == 0
}

// Want is an open blocker of a task: something that only a person can give.
type Want struct {
	TaskID, BlockerID string
	Form              bool // it is filled in, by whoever may write secrets; else answered
	Parked            bool // the run that asked waits for it
	Since             time.Time
}

func (w *Want) hold() Hold {
	h := Hold{Reason: Blocked, Since: w.Since, Blocking: true, Clear: &Clear{Capability: "blocker.answer", Args: map[string]string{"blockerId": w.BlockerID}},
		ClearsWhen: "a person who may write tasks answers the blocker " + w.BlockerID}
	if w.Form {
		h.Clear.Capability = "blocker.submit"
		h.ClearsWhen = "whoever may write secrets, or has its fix_url, fills in the form of the blocker " + w.BlockerID
	}
	return h
}

// PullNeed is what only a person can do about a pull request.
type PullNeed struct {
	Since      time.Time
	ClearsWhen string
	Clear      Clear
}

func (n *PullNeed) hold() Hold {
	return Hold{Reason: HoldNeeds, Since: n.Since, Blocking: true, ClearsWhen: n.words(), Clear: &n.Clear}
}

// words say what has to happen, and by which call.
func (n *PullNeed) words() string {
	of := "pull request"
	if strings.HasPrefix(n.Clear.Capability, "task.") {
		of = "task"
	}
	return n.ClearsWhen + " (" + n.Clear.Capability + " of the " + of + " " + n.Clear.Args["id"] + ")"
}

// parkedFor are the holds of a task whose run waits for people.
func parkedFor(t *Row, wants []Want) []Hold {
	out := []Hold{}
	for i := range wants {
		if w := &wants[i]; w.TaskID == t.ID && w.Parked {
			out = append(out, w.hold())
		}
	}
	return out
}

// Stop is the limit that stopped a task, and what raises it; no call of the
// account's members does if Clear is nil.
type Stop struct {
	TaskID     string
	ClearsWhen string
	Clear      *Clear
}

// heldFor are the holds of a held task.
func heldFor(t *Row, wants []Want, stops []Stop) []Hold {
	reason := Blocked
	if t.FailureKind != nil {
		reason = *t.FailureKind
	}
	if reason == Blocked {
		var out []Hold
		for i := range wants {
			if wants[i].TaskID == t.ID {
				out = append(out, wants[i].hold())
			}
		}
		if out != nil {
			return out
		}
	}
	when, clear := "what blocks it is answered, or it is redispatched", "task.redispatch"
	if reason == BudgetExhausted || reason == UnpricedModel {
		if i := slices.IndexFunc(stops, func(s Stop) bool { return s.TaskID == t.ID }); i >= 0 {
			return []Hold{{Reason: reason, Since: t.UpdatedAt, Blocking: true, ClearsWhen: stops[i].ClearsWhen, Clear: stops[i].Clear}}
		}
		when, clear = "the budget that stopped it is raised", "task.budget_set"
	}
	return []Hold{{Reason: reason, Since: t.UpdatedAt, Blocking: true, ClearsWhen: when, Clear: &Clear{Capability: clear, Args: map[string]string{"id": t.ID}}}}
}

// stuckBehind tells whether the holds have kept a task for too long behind
// something that only a person clears.
func stuckBehind(holds []Hold, now time.Time) bool {
	return slices.ContainsFunc(holds, func(h Hold) bool {
		return slices.Contains(personClears, h.Reason) && now.Sub(h.Since) > stuckBehindPerson
	})
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
