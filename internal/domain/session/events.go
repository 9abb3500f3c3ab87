package session

import "yardmaster/internal/event"

// Topic is the topic of changes of sessions that clients follow.
var Topic = event.Sessions

// The data of audited events.
type (
	openedData struct {
		Kind    string `json:"kind" doc:"what the session is for"`
		Trigger string `json:"trigger" doc:"what led to it"`
	}
	endedData struct {
		Outcome string `json:"outcome" doc:"how it ended"`
	}
	messageSentData struct {
		Characters int    `json:"characters" doc:"how long the message is"`
		MessageID  string `json:"message_id" doc:"the message"`
	}
)

// The audited events of sessions. The events within a session are in timeline.go.
var (
	openedEvent      = event.Declare[openedData]("session.opened", Topic, "The platform began a conversation of its own with a model.")
	endedEvent       = event.Declare[endedData]("session.ended", Topic, "A conversation of the platform's own ended.")
	messageSentEvent = event.Declare[messageSentData]("session.message_sent", Topic, "Somebody sent the agent of a run a message.")
)

// Ended is sent with the id of a session, in the transaction in which it ends.
var Ended = event.DeclareSignal[string]("session.over", "A conversation with a model is over.")
