package member

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is who is told of the roster.
var audience = event.Audience(policy.ReadAccount)

// The data of events.
type (
	roleData struct {
		Role policy.Role `json:"role" enum:"viewer,member,admin,owner" doc:"role of the member, or of the former one"`
	}
	invitedData struct {
		Email string      `json:"email" doc:"the address that the invitation is for"`
		Role  policy.Role `json:"role" enum:"viewer,member,admin,owner" doc:"the role that it gives"`
	}
)

// The events of a member. Operators change roles, too, so that the event of it
// is declared with the account.
var (
	addedEvent   = event.Declare[roleData]("org_member.added", audience, "A registered user was made a member.")
	invitedEvent = event.Declare[invitedData]("org_member.invited", audience, "Somebody was invited to become a member.")
	removedEvent = event.Declare[roleData]("org_member.removed", audience, "A member was taken out of the account.")
	leftEvent    = event.Declare[roleData]("org_member.left", audience, "A member left the account.")
)
