package tracker

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about the connection, tracked that of its issues.
var (
	audience = event.Audience(policy.ReadWebhooks)
	tracked  = event.Audience(policy.ReadTasks)
)

// The data of events. None holds a key.
type (
	connectedData struct {
		Team string `json:"team" doc:"key of the team at Linear"`
	}
	requestedData struct {
		Title string `json:"title" doc:"its title"`
	}
	openedData struct {
		Identifier string `json:"identifier" doc:"what Linear calls it"`
		URL        string `json:"url" doc:"its page"`
	}
	failedData struct {
		Reason string `json:"reason" doc:"why, as Linear says it"`
	}
)

// Failure is an issue that is not opened.
type Failure struct{ RepoID, Title, Why string }

// GivenUp is sent when an issue was not opened at Linear, for good.
var GivenUp = event.DeclareSignal[Failure]("tracker.given_up", "An issue was not opened at Linear, for good.")

// The events of the connection and of its issues.
var (
	connectedEvent = event.Declare[connectedData]("integration.linear_connected", audience, "Issues can be opened at Linear.")
	removedEvent   = event.Declare[event.None]("integration.linear_removed", audience, "Issues are opened at Linear no more, and its key was forgotten.")
	requestedEvent = event.Declare[requestedData]("integration.linear_requested", tracked, "An issue is to be opened at Linear.")
	openedEvent    = event.Declare[openedData]("integration.linear_opened", tracked, "Linear has opened the issue.")
	failedEvent    = event.Declare[failedData]("integration.linear_failed", tracked, "Linear did not open the issue.")
)
