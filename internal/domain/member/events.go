package member

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees the events of the roster.
var audience = event.Audience(policy.ReadAccount)

// RoleChanged is the data of RoleChangedEvent.
type RoleChanged struct {
	PreviousRole policy.Role `json:"previous_role" doc:"the role before"`
	Role         policy.Role `json:"role" doc:"the role from now on"`
}

// The data of the other events.
type (
	roleData struct {
		Role policy.Role `json:"role" doc:"role of the member, or of the former one"`
	}
	invitedData struct {
		Email string      `json:"email" doc:"the address that the invitation is for; empty: it is for a login"`
		Login string      `json:"login,omitempty" doc:"the login that the invitation is for, whether or not anybody has it"`
		Role  policy.Role `json:"role" doc:"the role that it gives"`
	}
)

// The events of a member. Package operator records RoleChangedEvent, too: operators
// change roles in any account.
var (
	addedEvent   = event.Declare[roleData]("org_member.added", audience, "A registered user was made a member.")
	invitedEvent = event.Declare[invitedData]("org_member.invited", audience, "Somebody was invited to become a member.")
	removedEvent = event.Declare[roleData]("org_member.removed", audience, "A member was taken out of the account.")
	leftEvent    = event.Declare[roleData]("org_member.left", audience, "A member left the account.")

	RoleChangedEvent = event.Declare[RoleChanged]("org_member.role_changed", audience, "A member has another role.")
)
