package sso

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees the events of the account's identity provider.
var audience = event.Audience(policy.ReadAccount)

// setData is the data of setEvent.
type setData struct {
	Issuer        string   `json:"issuer" doc:"address of the provider"`
	ClientID      string   `json:"client_id" doc:"what the provider calls this server"`
	Domains       []string `json:"domains" doc:"of the addresses that the provider may vouch for"`
	Role          Role     `json:"role" doc:"of people who are new here"`
	SecretChanged bool     `json:"secret_changed" doc:"whether another secret of the client was sent"`
}

// The events of an account's identity provider.
var (
	setEvent     = event.Declare[setData]("org_sso.set", audience, "The account's identity provider was set.")
	deletedEvent = event.Declare[event.None]("org_sso.deleted", audience, "The account has no identity provider of its own any more.")
)
