package push

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about browsers.
var audience = event.Audience(policy.ReadAccount)

// browserData is the data of events. The object of an event is the subscription.
type browserData struct {
	Label   string `json:"label" doc:"what its person calls it"`
	Service string `json:"service" doc:"host of the service that messages go through"`
}

var (
	subscribedEvent   = event.Declare[browserData]("push.subscribed", audience, "A browser of a person takes messages.")
	unsubscribedEvent = event.Declare[browserData]("push.unsubscribed", audience, "A browser of a person takes no more messages.")
)
