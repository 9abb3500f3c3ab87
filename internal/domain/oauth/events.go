package oauth

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees the events of programs that people let in.
var audience = event.Audience(policy.ReadAccount)

// The data of events.
type (
	deviceData struct {
		Name   string   `json:"name" doc:"what the command line calls itself"`
		Scopes []string `json:"scopes" doc:"what it asked for, as far as the person may give it"`
	}
	clientData struct {
		Name     string   `json:"name" doc:"what the program calls itself"`
		Redirect string   `json:"redirect" doc:"the address that the code was sent to, as the person was shown it"`
		Scopes   []string `json:"scopes" doc:"what it may do"`
	}
)

// The events of programs that ask people for access.
var (
	deviceApprovedEvent = event.Declare[deviceData]("device.approved", audience, "A person let a command line in.")
	deviceDeniedEvent   = event.Declare[deviceData]("device.denied", audience, "A person turned a command line away.")
	authorizedEvent     = event.Declare[clientData]("client.authorized", audience, "A person let a program in.")
)

// decidedEvents are the events by the decision about a command line.
var decidedEvents = map[string]event.Kind[deviceData]{approved: deviceApprovedEvent, denied: deviceDeniedEvent}
