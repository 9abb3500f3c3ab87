package token

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees the events of tokens.
var audience = event.Audience(policy.ReadAccount)

// mintedData is the data of mintedEvent.
type mintedData struct {
	Scopes []string          `json:"scopes" doc:"what it may do"`
	Kind   policy.Credential `json:"kind" enum:"pat,operator" doc:"pat: a personal access token; operator: one of an operator, on the platform's record"`
}

// Minted is sent in the transaction that mints a personal access token, with the id of its
// user, empty without one. An error undoes it.
var Minted = event.DeclareSignal[string]("token.made", "A personal access token is being minted.")

// The events of a token.
var (
	mintedEvent  = event.Declare[mintedData]("token.minted", audience, "A token was minted.")
	renamedEvent = event.Declare[event.None]("token.renamed", audience, "A token got another name, or none.")
	revokedEvent = event.Declare[event.None]("token.revoked", audience, "A token was revoked.")
)
