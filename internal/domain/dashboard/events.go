package dashboard

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees these events in the audit trail; no topic follows them.
var audience = event.Audience(policy.ReadDashboards)

type nameData struct {
	Name     string `json:"name" doc:"its name"`
	Personal bool   `json:"personal" doc:"whether one person alone sees it"`
	Widgets  int    `json:"widgets" doc:"how many widgets it has"`
}

type whyData struct {
	Why string `json:"why" doc:"why, as the operator said"`
}

// The events of boards.
var (
	createdEvent  = event.Declare[nameData]("dashboard.created", audience, "A board was made.")
	replacedEvent = event.Declare[nameData]("dashboard.replaced", audience, "A board was made anew in place of one of its name.")
	updatedEvent  = event.Declare[nameData]("dashboard.updated", audience, "A board was renamed or laid out anew.")
	deletedEvent  = event.Declare[nameData]("dashboard.deleted", audience, "A board was deleted.")

	requestedEvent = event.Declare[whyData]("builtin_dashboard_sync.enqueue_requested", event.Audience(policy.AdminReadPlat),
		"An operator asked to make the built-in boards of all accounts anew.")
)
