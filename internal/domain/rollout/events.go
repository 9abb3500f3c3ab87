package rollout

import (
	"time"

	"yardmaster/internal/domain/box"
	"yardmaster/internal/event"
)

type (
	startedData struct {
		Channel string `json:"channel" doc:"channel of the release"`
		Version string `json:"version" doc:"its version"`
		Boxes   int    `json:"boxes" doc:"boxes that take part"`
	}
	movedData struct {
		State   string     `json:"state" doc:"state of the rollout"`
		Wave    int64      `json:"wave" doc:"wave that is under way; 1: the canary"`
		Version string     `json:"version" doc:"of the release"`
		Until   *time.Time `json:"soak_until,omitempty" doc:"when the soak ends"`
		Why     string     `json:"why,omitempty" doc:"why it was halted"`
		Runs    int64      `json:"runs_after" doc:"runs that ended on updated boxes"`
		Failed  int64      `json:"failed_after" doc:"those of them that failed"`
	}
	boxData struct {
		BoxID   string `json:"box_id" doc:"the box"`
		Version string `json:"version" doc:"that it was told to take last"`
		Why     string `json:"why,omitempty" doc:"what is wrong"`
	}
	pinData struct {
		Scope   string `json:"scope" doc:"account, label or box"`
		Ref     string `json:"ref" doc:"the label or the box"`
		Channel string `json:"channel" doc:"channel that they follow; empty: as the next wider scope says"`
		Pinned  *bool  `json:"pinned" doc:"whether they take no updates; null: as the next wider scope says"`
		Why     string `json:"why" doc:"why"`
	}
)

// The events of rollouts.
var (
	startedEvent = event.Declare[startedData]("rollout.started", box.Topic, "Somebody started to bring the boxes to a release.")
	movedEvent   = event.Declare[movedData]("rollout.moved", box.Topic, "The rollout went on to its next part.")
	endedEvent   = event.Declare[movedData]("rollout.ended", box.Topic, "The rollout ended: all boxes are done, it halted itself, or somebody cancelled it.")
	pinnedEvent  = event.Declare[pinData]("rollout.pin_set", box.Topic, "Somebody said which channel boxes follow, or whether they take updates.")
)

// boxEvents are the events of a box in a rollout, by its new state.
var boxEvents = map[string]event.Kind[boxData]{
	Told:   event.Declare[boxData]("box.update_told", box.Topic, "The box was told to take a release."),
	Good:   event.Declare[boxData]("box.updated", box.Topic, "The box has done its test run with the release, which stays."),
	Failed: event.Declare[boxData]("box.update_failed", box.Topic, "The box goes on with the program of before."),
	Lost:   event.Declare[boxData]("box.update_lost", box.Topic, "The box fell silent with an update, or did not get there in time."),
	Away:   event.Declare[boxData]("box.update_left_out", box.Topic, "The box takes no part in the rollout any more."),
}
