package access

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Events about a person are recorded in the person's account, events about an
// application on the platform's record alone.
var (
	ofPlatform = event.Audience(policy.AdminReadUsers)
	ofAccount  = event.Audience(policy.ReadAccount)
)

// invitedData is the data of invitedEvent.
type invitedData struct {
	InvitationID string  `json:"invitation_id" doc:"the invitation that was mailed"`
	UserID       *string `json:"user_id" doc:"user of the applicant; null: they had not signed in before"`
	Approved     bool    `json:"approved" doc:"whether this let them through the gate"`
	AIDevs       int     `json:"ai_devs" doc:"AI developers that are free for them"`
}

// The events of applications, and of people at the gate.
var (
	createdEvent  = event.Declare[event.None]("access_request.created", ofPlatform, "Somebody applied for access.")
	declinedEvent = event.Declare[event.None]("access_request.declined", ofPlatform, "An operator declined an application for access.")
	invitedEvent  = event.Declare[invitedData]("access_request.invited", ofAccount, "An operator invited somebody who had "+
		"applied for access.")
	approvedEvent  = event.Declare[event.None]("user.approved", ofAccount, "An operator let the user through the gate.")
	suspendedEvent = event.Declare[event.None]("user.suspended", ofAccount, "An operator sent the user back to the waitlist.")
)
