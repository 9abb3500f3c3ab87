package invitation

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is who is told of what members do with invitations. Operators send
// them again on the platform's record alone.
var audience = event.Audience(policy.ReadAccount)

// acceptedData is the data of the event that an invitation was accepted.
type acceptedData struct {
	Kind   string       `json:"kind" enum:"org_member,platform" doc:"what it was for"`
	UserID string       `json:"user_id" doc:"who accepted it"`
	Role   *policy.Role `json:"role" enum:"viewer,member,admin,owner" doc:"the role that it gave; null on a platform invitation"`
}

// The events of an invitation. RevokedEvent is recorded by whoever withdraws
// one.
var (
	acceptedEvent = event.Declare[acceptedData]("invitation.accepted", audience, "The invitation was accepted.")
	resentEvent   = event.Declare[event.None]("invitation.resent", event.Audience(policy.AdminReadUsers),
		"The invitation was mailed again with a new link.")
	RevokedEvent = event.Declare[event.None]("invitation.revoked", audience, "The invitation was withdrawn.")
)

// Withdrawn is sent, with the address, when a platform invitation was
// withdrawn.
var Withdrawn = event.DeclareSignal[string]("invitation.withdrawn", "A platform invitation was withdrawn.")

// Owner is a user who has become an owner of an account, or is none any more.
type Owner struct{ AccountID, UserID string }

// OwnersChanged is sent when an account has got an owner, or lost one.
var OwnersChanged = event.DeclareSignal[Owner]("account.owners_changed", "An account has got an owner, or lost one.")
