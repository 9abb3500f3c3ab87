package emailroute

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about routes.
var audience = event.Audience(policy.ReadAccount)

// The data of events.
type (
	routeData struct {
		Address string   `json:"address" doc:"the address"`
		Kinds   []string `json:"kinds" doc:"the kinds of notices"`
	}
	stoppedData struct {
		Address string `json:"address" doc:"the address"`
		Kind    string `json:"kind" doc:"the kind that is not sent there any more"`
	}
)

// The events of routes.
var (
	createdEvent   = event.Declare[routeData]("email_route.created", audience, "An address was asked whether notices shall come there.")
	resentEvent    = event.Declare[routeData]("email_route.resent", audience, "An address was asked again whether notices shall come there.")
	confirmedEvent = event.Declare[routeData]("email_route.confirmed", audience, "Somebody who reads the mails of an address wants notices there.")
	stoppedEvent   = event.Declare[stoppedData]("email_route.stopped", audience,
		"Somebody who reads the mails of an address wants no more notices of a kind there.")
	deletedEvent = event.Declare[routeData]("email_route.deleted", audience, "Notices are not sent to an address any more.")
)
