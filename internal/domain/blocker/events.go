package blocker

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Topic is the topic of changes of blockers that clients follow.
var Topic = &event.Topic{Name: "blockers", Scope: policy.ReadTasks, Fixed: true}

// The data of events.
type (
	declaredData struct {
		Fields    []string `json:"fields" doc:"names of what is to be filled in; null: nothing"`
		Kind      string   `json:"kind" doc:"what sort of thing is missing"`
		Refused   []string `json:"refused" doc:"the fields that nobody could fill in, with why; null: none"`
		RunID     string   `json:"run_id" doc:"the run that declared it"`
		SettledAs string   `json:"settled_as,omitempty" doc:"the blocker whose answer it has; left out if it waits for its own"`
		TaskID    string   `json:"task_id" doc:"the task that is blocked"`
	}
	adoptedData struct {
		FromRunID string `json:"from_run_id" doc:"the run that it was of before"`
		RunID     string `json:"run_id" doc:"the run that declared it again"`
		TaskID    string `json:"task_id" doc:"the task that is blocked"`
	}
	answeredData struct {
		AskID  *string `json:"ask_id" doc:"the ask that was filed; null without one"`
		Kind   string  `json:"kind" doc:"what became of the task: released, woken, filed or recorded"`
		TaskID string  `json:"task_id" doc:"the task that was blocked"`
	}
	landedData struct {
		AskID  *string  `json:"ask_id" doc:"the ask that was filed; null without one"`
		Fields []string `json:"fields" doc:"names of what was filled in"`
		Kind   string   `json:"kind" doc:"what became of the task: released, woken, filed or recorded"`
		TaskID string   `json:"task_id" doc:"the task that was blocked"`
	}
	closedData struct {
		TaskID string `json:"task_id" doc:"the task that was blocked"`
	}
)

// The events of blockers.
var (
	DeclaredEvent     = event.Declare[declaredData]("blocker.declared", Topic, "A run cannot go on without a person.")
	adoptedEvent      = event.Declare[adoptedData]("blocker.adopted", Topic, "A later run of the task asked for the same.")
	answeredEvent     = event.Declare[answeredData]("blocker.answered", Topic, "Somebody answered the blocker in words.")
	fieldsLandedEvent = event.Declare[landedData]("blocker.fields_landed", Topic, "Some of the form of the blocker was filled in.")
	submittedEvent    = event.Declare[landedData]("blocker.submitted", Topic, "The last of the form of the blocker was filled in.")
	withdrawnEvent    = event.Declare[closedData]("blocker.withdrawn", Topic, "Somebody withdrew the blocker.")
	expiredEvent      = event.Declare[closedData]("blocker.expired", Topic, "The task of the blocker was cancelled.")
)

// Ended are the events after which a blocker waits for nobody.
var Ended = []event.Any{answeredEvent, submittedEvent, withdrawnEvent, expiredEvent}

// Refusal is the data of FieldsRefused: the run, and a text for it that names the
// fields.
type Refusal struct{ RunID, Text string }

// FieldsRefused is sent before a blocker is stored without some of its fields.
var FieldsRefused = event.DeclareSignal[Refusal]("blocker.fields_refused", "A blocker lost some fields that nobody could fill in.")
