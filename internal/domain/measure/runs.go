package measure

// RunState is where a try of a task stands.
type RunState string

// States of a run. A parked run is live and waits for a person.
const (
	RunLeased = "leased" // its box has not started the agent yet
	RunLive   = "live"
	RunParked = "parked"
	RunEnded  = "ended"
)

// Values lists all states.
func (RunState) Values() []string { return []string{RunLeased, RunLive, RunParked, RunEnded} }

// Outcome is how a try of a task ended.
type Outcome string

// Outcomes of an ended run.
const (
	RunSucceeded   = "succeeded"
	RunFailed      = "failed"
	RunInterrupted = "interrupted" // stopped from outside
	RunLost        = "lost"        // its box went away
)

// Values lists all outcomes.
func (Outcome) Values() []string { return []string{RunSucceeded, RunFailed, RunInterrupted, RunLost} }
