package delivery

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

type replayedData struct {
	Host string `json:"host" doc:"the code host"`
	Kind string `json:"kind" doc:"the host's name of the event"`
}

var replayedEvent = event.Declare[replayedData]("code_host.replayed", event.Audience(policy.AdminReadPlat),
	"An operator had a delivery of a code host applied once more.")
