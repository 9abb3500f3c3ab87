package task

import (
	"slices"
	"time"

	"yardmaster/internal/protocol"
)

// Status is a task's state.
type Status string

// The states. Completed, merged and cancelled are final; failed is left only
// by a redispatch, or with its pull request that was closed and is open again.
const (
	Pending        Status = "pending"
	Held           Status = "held"
	Claimed        Status = "claimed"
	Running        Status = "running"
	AwaitingCI     Status = "awaiting_ci"
	AwaitingReview Status = "awaiting_review"
	Mergeable      Status = "mergeable"
	Completed      Status = "completed"
	Merged         Status = "merged"
	Cancelled      Status = "cancelled"
	Failed         Status = "failed"
)

// Statuses lists all states.
func Statuses() []Status {
	return []Status{Pending, Held, Claimed, Running, AwaitingCI, AwaitingReview, Mergeable, Completed, Merged, Cancelled, Failed}
}

// Values lists all states as texts.
func (Status) Values() (out []string) {
	for _, s := range Statuses() {
		out = append(out, string(s))
	}
	return out
}

// moves are all moves that are allowed, by state.
var moves = map[Status][]Status{
	Pending:        {Claimed, Held, Failed, Cancelled},
	Held:           {Pending, Failed, Cancelled},
	Claimed:        {Running, Pending, Held, Failed, Cancelled},
	Running:        {Pending, Held, AwaitingCI, Completed, Failed, Cancelled},
	AwaitingCI:     {AwaitingReview, Mergeable, Merged, Failed, Cancelled},
	AwaitingReview: {AwaitingCI, Mergeable, Merged, Failed, Cancelled},
	Mergeable:      {AwaitingCI, AwaitingReview, Merged, Failed, Cancelled},
	Failed:         {Pending, AwaitingCI}, // the latter by a pull request that is open again
}

// Allowed tells whether a task may go from one state to another.
func Allowed(from, to Status) bool { return slices.Contains(moves[from], to) }

// Terminal tells whether the task is over: no work goes on, and none begins by
// itself.
func (s Status) Terminal() bool {
	return s == Completed || s == Merged || s == Cancelled || s == Failed
}

// InFlight tells whether a box holds the task.
func (s Status) InFlight() bool { return s == Claimed || s == Running }

// Shipped tells whether the agent of the task has done its work.
func (s Status) Shipped() bool {
	return slices.Contains([]Status{Merged, Completed, AwaitingCI, AwaitingReview, Mergeable}, s)
}

// succeeded tells whether the tasks that depend on this one may start.
func (s Status) succeeded() bool { return s == Completed || s == Merged }

// Failure kinds.
const (
	BoxLost        = "box_lost"
	BoxDrained     = "box_drained"
	BoxUnfit       = protocol.FailureBoxUnfit
	LeaseExpired   = "lease_expired"
	CheckoutFailed = "checkout_failed"
	SetupFailed    = "setup_failed"
	PushRejected   = "push_rejected"
	StorageFailed  = "storage_failed"

	RunTimeout      = "run_timeout"
	RunStalled      = "run_stalled"
	AgentCrashed    = "agent_crashed"
	AgentError      = "agent_error"
	ReportMissing   = "report_missing"
	GaveUp          = "gave_up"
	ContextOverflow = "context_overflow"
	ResourceLimit   = "resource_limit"

	ProviderAuth        = "provider_auth"
	ProviderQuota       = "provider_quota"
	ProviderRateLimit   = "provider_rate_limit"
	ProviderUnavailable = "provider_unavailable"
	ModelUnavailable    = "model_unavailable"
	NoCredential        = "no_credential"

	Blocked          = "blocked"
	BudgetExhausted  = "budget_exhausted"
	UnpricedModel    = "unpriced_model" // where a limit in dollars holds
	CILadderSpent    = "ci_ladder_spent"
	MergeConflict    = "merge_conflict"
	PRClosed         = "pr_closed"
	DependencyFailed = "dependency_failed"
	PolicyRefused    = "policy_refused"
)

// consequence is what a failed try means for its task.
type consequence uint8

const (
	charge       consequence = iota // counts as one of the tries
	forgive                         // try again at once, uncharged
	forgiveLater                    // try again after the ladder's wait, uncharged
	ignore                          // try again at once, as if it had not been tried
	park                            // only a person or a budget can help
	giveUp                          // another try cannot help
)

var consequences = map[string]consequence{
	BoxLost: forgive, BoxDrained: forgive, LeaseExpired: forgive,
	BoxUnfit:          ignore, // the box that failed is given nothing more, so no number of tries has to end this
	ProviderRateLimit: forgiveLater, ProviderUnavailable: forgiveLater, ModelUnavailable: forgiveLater,
	CheckoutFailed: charge, SetupFailed: charge, PushRejected: charge, StorageFailed: charge,
	RunTimeout: charge, RunStalled: charge, AgentCrashed: charge, AgentError: charge, ReportMissing: charge, GaveUp: charge,
	ContextOverflow: charge,
	ResourceLimit:   charge, // its own doing, and another try or a larger box may fare better
	ProviderAuth:    charge, ProviderQuota: charge, NoCredential: charge, MergeConflict: charge,
	Blocked: park, BudgetExhausted: park, UnpricedModel: park,
	CILadderSpent: giveUp, PRClosed: giveUp, DependencyFailed: giveUp, PolicyRefused: giveUp,
}

// KnownFailure tells whether kind is one of the failure kinds.
func KnownFailure(kind string) bool {
	_, ok := consequences[kind]
	return ok
}

// DefaultBackoff is the wait before the next try after the 1st, 2nd, … failure.
var DefaultBackoff = []time.Duration{30 * time.Second, 5 * time.Minute, 30 * time.Minute}

// maxUncharged is how many uncharged tries in a row end a task.
const maxUncharged = 5

// unpaced is how many tries in a row that faults of boxes ended are followed by the next
// at once. By then most boxes of a small fleet have been tried.
const unpaced = 3

// pace returns how long a task waits after a try that a fault of its box ended. endings
// are those of its tries, the newest last. Such tries are not charged, so without pace a
// box that claims to be fit each time would fail without end.
func pace(endings []Ending, backoff []time.Duration) time.Duration {
	n := 0
	for i := len(endings) - 1; i >= 0 && endings[i].FailureKind != nil && *endings[i].FailureKind == BoxUnfit; i-- {
		n++
	}
	if n <= unpaced {
		return 0
	}
	return backoff[min(n-unpaced, len(backoff))-1]
}

// afterFailure returns the state of a task after a try whose failure means what, how long
// the task waits there, and its new counters of tries.
func afterFailure(
	what consequence, charged, uncharged, maxAttempts int64, backoff []time.Duration,
) (to Status, wait time.Duration, c, u int64) {
	rung := func(n int64) time.Duration { return backoff[min(int(n), len(backoff))-1] }
	switch what {
	case park:
		return Held, 0, charged, uncharged
	case giveUp:
		return Failed, 0, charged, uncharged
	case ignore: // how long it waits depends on how often in a row: see pace
		return Pending, 0, charged, uncharged
	case forgive, forgiveLater:
		uncharged++
		if uncharged >= maxUncharged {
			return Failed, 0, charged, uncharged
		}
		if what == forgiveLater {
			wait = rung(uncharged)
		}
		return Pending, wait, charged, uncharged
	}
	charged++
	if charged >= maxAttempts {
		return Failed, 0, charged, 0
	}
	return Pending, rung(charged), charged, 0
}
