package ask

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Topic is the list of asks that clients follow.
var Topic = &event.Topic{Name: "asks", Scope: policy.ReadTasks, Fixed: true}

// The data of events.
type (
	filedData struct {
		FiledBy string `json:"filed_by" doc:"who filed it"`
		Source  string `json:"source" doc:"where it came from"`
		Title   string `json:"title" doc:"its title"`
	}
	settledData struct {
		CoveringTaskID string   `json:"covering_task_id,omitempty" doc:"of a duplicate: the task that covers it; left out otherwise"`
		EscalationID   string   `json:"escalation_id,omitempty" doc:"the question to a person; left out without one"`
		PlanID         string   `json:"plan_id,omitempty" doc:"the plan that was made of it; left out without one"`
		Reason         string   `json:"reason,omitempty" doc:"slug of why a person is asked; left out if none is"`
		TaskIDs        []string `json:"task_ids,omitempty" doc:"the tasks minted for it, those of its plan too, or linked to it; left out if there are none"`
		Verdict        string   `json:"verdict" doc:"minted, dropped, cross_linked, planned or escalated"`
	}
	repeatedData struct {
		Count int64 `json:"count" doc:"how often it was asked for by now"`
	}
	approvedData struct {
		Reason string `json:"reason" doc:"slug of why the ask waited for a person"`
	}
	heldData struct {
		Reason string `json:"reason" doc:"slug of what keeps its judge from a call to a model"`
	}
)

// The events of an ask.
var (
	filedEvent    = event.Declare[filedData]("ask.filed", Topic, "An ask was filed.")
	repeatedEvent = event.Declare[repeatedData]("ask.repeated", Topic, "The trouble that the ask is about was seen again, twice as often as when this was recorded last.")
	heldEvent     = event.Declare[heldData]("ask.held", Topic, "The ask waits until its judge may be paid.")
	releasedEvent = event.Declare[event.None]("ask.released", Topic, "The judge of the ask may be paid again.")
	approvedEvent = event.Declare[approvedData]("ask.approved", Topic, "A person let an ask of a run into triage, and answers for it from then on.")
	redrivenEvent = event.Declare[event.None]("ask.redriven", Topic, "Somebody put the ask, which no judge had answered, back into triage.")
)

// Settlement is an ask that has moved.
type Settlement struct {
	AskID        string
	State        State
	Verdict      Verdict // zero for Pending
	Category     string  // of its escalation; "" without one
	EscalationID string
}

// Settled is sent when an ask leaves triage, or comes back to it.
var Settled = event.DeclareSignal[Settlement]("ask.settled", "An ask has left triage, or has come back to it.")

// settledEvents are the events of an ask that leaves triage, by its new state.
var settledEvents = map[State]event.Kind[settledData]{
	Triaged:   event.Declare[settledData]("ask.triaged", Topic, "Work came of the ask, or covers it already."),
	Dropped:   event.Declare[settledData]("ask.dropped", Topic, "The ask needs no work."),
	Escalated: event.Declare[settledData]("ask.escalated", Topic, "A person is to decide about the ask."),
}
