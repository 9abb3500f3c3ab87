package notification

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about preferences.
var audience = event.Audience(policy.ReadAccount)

// The data of events. The object of an event is the user.
type (
	changedData struct {
		Off   []string `json:"off" doc:"what is not told any more: kind and channel, such as task_done/email; null: nothing"`
		On    []string `json:"on" doc:"what is told from now on: kind and channel; null: nothing"`
		Quiet *string  `json:"quiet" doc:"the quiet hours from now on, such as 22:00-07:00 Europe/Berlin; null without"`
	}
	unsubscribedData struct {
		Kind string `json:"kind" doc:"the kind of notifications that is mailed no more"`
	}
)

// The events of preferences.
var (
	changedEvent = event.Declare[changedData]("notification.prefs_changed", audience,
		"A person chose what they are told of, and how.")
	unsubscribedEvent = event.Declare[unsubscribedData]("notification.unsubscribed", audience,
		"A person used the link of a mail to get no more of its kind.")
)
