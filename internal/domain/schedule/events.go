package schedule

import (
	"time"

	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about schedules.
var audience = event.Audience(policy.ReadTasks)

// The data of events.
type (
	setData struct {
		Cron        string `json:"cron" doc:"when it files"`
		Paused      bool   `json:"paused" doc:"whether it files nothing until somebody resumes it"`
		RequestedBy string `json:"requested_by" doc:"id of the person for whom it files"`
		Title       string `json:"title" doc:"title of what it files"`
		WhenBusy    string `json:"when_busy" doc:"queue or skip"`
		Zone        string `json:"zone" doc:"the time zone of cron"`
	}
	titleData struct {
		Title string `json:"title" doc:"title of what it files"`
	}
	pausedData struct {
		Title string `json:"title" doc:"title of what it files"`
		Why   string `json:"why" doc:"person: somebody has paused it; person_left: the person for whom it files has left, or may file no asks"`
	}
	filedData struct {
		AskID      string    `json:"ask_id" doc:"the ask"`
		Occurrence time.Time `json:"occurrence" doc:"when it was due"`
		Title      string    `json:"title" doc:"title of the ask"`
	}
	skippedData struct {
		Occurrence time.Time `json:"occurrence" doc:"when it was due"`
		Title      string    `json:"title" doc:"title of what was not filed"`
		Why        string    `json:"why" doc:"busy, late, repo_disabled, repo_gone or person_left"`
	}
)

// The events of schedules. A schedule that skips one occurrence after another for the
// same reason says so once.
var (
	createdEvent = event.Declare[setData]("schedule.created", audience, "A schedule was made.")
	UpdatedEvent = event.Declare[setData]("schedule.updated", audience, "A schedule was changed.")
	DeletedEvent = event.Declare[titleData]("schedule.deleted", audience, "A schedule was deleted.")
	PausedEvent  = event.Declare[pausedData]("schedule.paused", audience, "A schedule files nothing until somebody resumes it.")
	ResumedEvent = event.Declare[setData]("schedule.resumed", audience, "A schedule files again.")
	filedEvent   = event.Declare[filedData]("schedule.filed", audience, "A schedule filed an ask.")
	skippedEvent = event.Declare[skippedData]("schedule.skipped", audience, "A schedule left an occurrence out.")
)
