package ci

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Topic is the list of checks that clients follow.
var Topic = &event.Topic{Name: "ci", Scope: policy.ReadRunners, Fixed: true}

// The data of events of checks.
type (
	begunData struct {
		SHA string `json:"sha" doc:"the commit that is checked"`
	}
	endedData struct {
		ExitCode *int   `json:"exit_code" doc:"what the command ended with; null: it was never run to its end"`
		SHA      string `json:"sha" doc:"the commit that was checked"`
	}
)

var runningEvent = event.Declare[begunData]("ci.running", Topic, "A box runs the check of a commit.")

// endedEvents are the events of the end of a check, by its state.
var endedEvents = map[string]event.Kind[endedData]{
	Passed:    event.Declare[endedData]("ci.passed", Topic, "The check of a commit passed."),
	Failed:    event.Declare[endedData]("ci.failed", Topic, "The check of a commit failed."),
	Lost:      event.Declare[endedData]("ci.lost", Topic, "The check of a commit ended without a result."),
	Cancelled: event.Declare[endedData]("ci.cancelled", Topic, "The check of a commit was cancelled, or is of no use any more."),
}

// End is the end of the check of the head of a pull request.
type End struct {
	PRID, RepoID, SHA string
	Passed            bool
	ExitCode          *int   // nil: the command was never run to its end
	Why               string // the reason why there is no exit code
}

// Ended is sent when the check of a head has ended.
var Ended = event.DeclareSignal[End]("ci.ended", "The check of a head of a pull request has ended.")
