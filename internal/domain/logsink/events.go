package logsink

import (
	"yardmaster/internal/event"
	"yardmaster/internal/llm/sink"
	"yardmaster/internal/policy"
)

// audience is everybody who sees the account: what they write goes there.
var audience = event.Audience(policy.ReadAccount)

// setData is the data of setEvent.
type setData struct {
	Kind sink.Kind `json:"kind" doc:"how copies are sent"`
	URL  string    `json:"url" doc:"their address, masked"`
}

// The events of sinks. Their object is the account.
var (
	setEvent = event.Declare[setData]("billing.log_sink_set", audience,
		"Copies of the account's model calls, with prompts and answers, are sent there.")
	clearedEvent = event.Declare[event.None]("billing.log_sink_cleared", audience,
		"Copies of the account's model calls are sent nowhere any more.")
)
