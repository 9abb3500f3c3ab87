package vault

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// audience is the scope that a subscriber needs for the events of secrets: the
// one that lists them.
var audience = event.Audience(policy.WriteSecrets)

// The data of events. None holds a value, or a part of one.
type (
	setData struct {
		Environment *string           `json:"environment" doc:"the environment it is for; null: for all"`
		Delivery    protocol.Delivery `json:"delivery" doc:"how runs get it"`
		Hosts       []string          `json:"hosts" doc:"the hosts that the broker adds it for; empty for env"`
		Header      *string           `json:"header" doc:"header that the broker sets; null for env"`
	}
	deletedData struct {
		Environment string `json:"environment" doc:"the environment it was for; empty: for all"`
	}
)

// The events of a secret, whose object is its name.
var (
	setEvent     = event.Declare[setData]("secret.set", audience, "A secret was kept.")
	deletedEvent = event.Declare[deletedData]("secret.deleted", audience, "A secret was deleted.")
)
