package source

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about sources.
var audience = event.Audience(policy.ReadWebhooks)

// The data of events. None holds a secret.
type (
	connectedData struct {
		Kind    string `json:"kind" doc:"kind of the system"`
		Name    string `json:"name" doc:"of the source"`
		Trusted bool   `json:"trusted" doc:"whether work may begin on what it delivers without a person"`
	}
	rotatedData struct {
		AtOnce bool   `json:"at_once" doc:"whether the secret before it ended at once"`
		Name   string `json:"name" doc:"of the source"`
	}
	namedData struct {
		Name string `json:"name" doc:"of the source"`
	}
)

// The events of sources.
var (
	connectedEvent    = event.Declare[connectedData]("integration.connected", audience, "A system was connected, whose deliveries are taken.")
	updatedEvent      = event.Declare[connectedData]("integration.updated", audience, "What is done with the deliveries of a system was changed.")
	rotatedEvent      = event.Declare[rotatedData]("integration.rotated", audience, "A source has another secret.")
	mappedEvent       = event.Declare[namedData]("integration.mapped", audience, "The deliveries of a source are read in another way.")
	disconnectedEvent = event.Declare[namedData]("integration.disconnected", audience, "A system was disconnected, and its secret forgotten.")
)
