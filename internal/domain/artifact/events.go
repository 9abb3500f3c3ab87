package artifact

import (
	"time"

	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees these events in the audit trail; no topic follows them.
var audience = event.Audience(policy.ReadArtifacts)

type (
	putData struct {
		Name       string  `json:"name" doc:"its name"`
		Size       int64   `json:"size" doc:"in bytes"`
		MediaType  string  `json:"content_type" doc:"its media type, as whoever stores it says"`
		Visibility string  `json:"visibility" doc:"run or account"`
		RunID      *string `json:"run_id" doc:"the run that it is of, if any"`
	}
	nameData struct {
		Name string `json:"name" doc:"its name"`
		Size int64  `json:"size" doc:"in bytes"`
	}
	// SharedData is the data of SharedEvent.
	SharedData struct {
		Name  string    `json:"name" doc:"its name"`
		Until time.Time `json:"until" doc:"when the link ends"`
	}
	deletedData struct {
		Name string `json:"name" doc:"its name"`
		Size int64  `json:"size" doc:"in bytes"`
		Why  string `json:"why" enum:"asked,expired" doc:"asked: somebody did it; expired: its time was over"`
	}
)

// The events of artifacts.
var (
	recordedEvent = event.Declare[putData]("artifact.recorded", audience, "Somebody was given an address to store an artifact at.")
	storedEvent   = event.Declare[nameData]("artifact.stored", audience, "An artifact arrived.")
	deletedEvent  = event.Declare[deletedData]("artifact.deleted", audience, "An artifact was deleted.")
	// SharedEvent is recorded when a link of an artifact was made.
	SharedEvent = event.Declare[SharedData]("artifact.shared", audience, "An artifact can be had by whoever has its link.")
)
