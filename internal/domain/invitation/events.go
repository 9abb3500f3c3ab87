package invitation

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees what members do with invitations. An operator who sends an invitation
// again is recorded on the platform's record alone.
var audience = event.Audience(policy.ReadAccount)

// acceptedData is the data of acceptedEvent.
type acceptedData struct {
	Kind   Kind         `json:"kind" doc:"what it was for"`
	UserID string       `json:"user_id" doc:"who accepted it"`
	Role   *policy.Role `json:"role" doc:"the role that it gave; null on a platform invitation"`
}

// joiningData is the data of joiningEvent.
type joiningData struct {
	AtOnce bool `json:"at_once" doc:"whether accounts may make the user a member without asking"`
}

// The events of an invitation. Every domain that withdraws an invitation records
// RevokedEvent.
var (
	acceptedEvent = event.Declare[acceptedData]("invitation.accepted", audience, "The invitation was accepted.")
	resentEvent   = event.Declare[event.None]("invitation.resent", event.Audience(policy.AdminReadUsers),
		"The invitation was mailed again with a new link.")
	joiningEvent = event.Declare[joiningData]("user.joining_set", audience,
		"A person allowed accounts to make them a member without asking, or no longer.")
	RevokedEvent = event.Declare[event.None]("invitation.revoked", audience, "The invitation was withdrawn.")
)

// Withdrawn is sent with the address when a platform invitation is withdrawn.
var Withdrawn = event.DeclareSignal[string]("invitation.withdrawn", "A platform invitation was withdrawn.")

// Owner is a user who has become an owner of an account, or is no longer one.
type Owner struct{ AccountID, UserID string }

// OwnersChanged is sent when an account gets an owner or loses one.
var OwnersChanged = event.DeclareSignal[Owner]("account.owners_changed", "An account has got an owner, or lost one.")
