package task

import (
	"maps"
	"slices"
	"time"
)

// Hold is one reason why a task is not being worked on. A blocking hold
// alone keeps every box from claiming it.
type Hold struct {
	_          struct{}  `doc:"One reason why a task is not being worked on."`
	Reason     string    `json:"reason" known:"hold_reasons" doc:"slug of the reason; for a held task the failure_kind that parked it"`
	Since      time.Time `json:"since" doc:"when it began to hold the task"`
	Blocking   bool      `json:"blocking" doc:"whether it keeps every box from claiming the task; others only say what it is behind"`
	ClearsWhen string    `json:"clears_when" example:"a box of the account comes online" doc:"what has to happen for it to end, in words"`
	Clear      *Clear    `json:"clear" doc:"the call that clears it; null when it only clears by itself"`
	Passes     bool      `json:"-"` // soon, by itself, whatever its reason
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
	HoldPlan         = "plan_does_not_cover" // its repository is private, and the account's tier is without those
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
	HoldPerson       = "waiting_person" // beside one of the above: the task that it waits for needs a person
	HoldNeeds        = "needs_person"   // its pull request does
	HoldQueue        = "queue_full"     // the queue of the account has no room for what its pull request needs
	HoldRate         = "code_host_rate" // what the code host is to do about its pull request waits for a limit of the host
)

// HoldReasons lists the reasons of holds: those of pending tasks, and the failure kinds
// that park one.
func HoldReasons() []string {
	out := []string{
		HoldNoBox, HoldBusy, HoldDraining, HoldUnfit, HoldAgent, HoldIsolation, HoldSeats, HoldDependencies, HoldBackoff, HoldConflict,
		HoldRepo, HoldPlan, HoldTemplate, HoldKey, HoldModel, HoldPerson, HoldNeeds, HoldQueue, HoldRate,
	}
	for _, kind := range slices.Sorted(maps.Keys(consequences)) {
		if consequences[kind] == park {
			out = append(out, kind)
		}
	}
	return out
}

// personReasons are the reasons that no passing of time ends.
var personReasons = []string{
	HoldRepo, HoldPlan, HoldTemplate, HoldKey, HoldModel,
	HoldNoBox, HoldDraining, HoldUnfit, HoldAgent, HoldIsolation, HoldPerson, HoldNeeds,
}

// PersonReasons lists the reasons that no passing of time ends, in the order in which
// they are looked at.
func PersonReasons() []string { return personReasons }

// StuckAfter is how long a task may wait for a person before it counts as stuck.
const StuckAfter = time.Hour

// Want is an open blocker of a task, which only a person can resolve.
type Want struct {
	TaskID, BlockerID string
	Form              bool // the blocker is a form, for people who may write secrets; otherwise a question
	Parked            bool // the run that asked waits for it
	Since             time.Time
}

func (w *Want) hold() Hold {
	h := Hold{Reason: Blocked, Since: w.Since, Blocking: true,
		Clear:      &Clear{Capability: "blocker.answer", Args: map[string]string{"blockerId": w.BlockerID}},
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
	Clear      *Clear // nil: no call ends it
}

func (n *PullNeed) hold() Hold {
	return Hold{Reason: HoldNeeds, Since: n.Since, Blocking: true, ClearsWhen: n.Words(), Clear: n.Clear}
}

// Words says what has to happen, and by which call.
func (n *PullNeed) Words() string {
	switch {
	case n.Clear == nil:
		return n.ClearsWhen
	case n.Clear.Args["id"] == "":
		return n.ClearsWhen + " (" + n.Clear.Capability + ")"
	}
	return n.ClearsWhen + " (" + n.Clear.Capability + " of the pull request " + n.Clear.Args["id"] + ")"
}

// PullWait is what a pull request waits for that no person ends: a limit of its code host, until
// a time, or room in the queue of the account.
type PullWait struct {
	Since, Until time.Time
	Full         bool // the queue is, until nobody knows when
}

func (w PullWait) hold() Hold {
	if w.Full {
		return Hold{Reason: HoldQueue, Since: w.Since, Blocking: true,
			ClearsWhen: "a task leaves the queue of the account, which has no room for the repair of its pull request"}
	}
	return Hold{
		Reason: HoldRate, Since: w.Since, Blocking: true,
		ClearsWhen: "the code host takes calls again, which is tried at " + w.Until.UTC().Format(time.RFC3339),
	}
}

// ParkedFor returns the holds of a task whose run waits for people.
func ParkedFor(t *Row, wants []Want) []Hold {
	out := []Hold{}
	for i := range wants {
		if w := &wants[i]; w.TaskID == t.ID && w.Parked {
			out = append(out, w.hold())
		}
	}
	return out
}

// Stop is the limit that stopped a task, and the call that raises the limit; Clear is
// nil if members of the account cannot raise it.
type Stop struct {
	TaskID     string
	ClearsWhen string
	Clear      *Clear
}

// HeldFor returns the holds of a held task.
func HeldFor(t *Row, wants []Want, stops []Stop) []Hold {
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
	return []Hold{{
		Reason: reason, Since: t.UpdatedAt, Blocking: true, ClearsWhen: when,
		Clear: &Clear{Capability: clear, Args: map[string]string{"id": t.ID}},
	}}
}

// ForPeople tells whether the hold is one that no passing of time ends.
func (h Hold) ForPeople() bool { return !h.Passes && slices.Contains(personReasons, h.Reason) }

// stuckBehind tells whether one of the holds is cleared by people only and is older than
// StuckAfter.
func stuckBehind(holds []Hold, now time.Time) bool {
	return slices.ContainsFunc(holds, func(h Hold) bool {
		return h.ForPeople() && now.Sub(h.Since) > StuckAfter
	})
}
