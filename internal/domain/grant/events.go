package grant

import (
	"time"

	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees the events of grants. They are recorded in the account in which the
// grant counts.
var audience = event.Audience(policy.ReadAccount)

// The data of events.
type (
	issuedData struct {
		UserID    *string    `json:"user_id" doc:"the person it was given to; null: it was given to the account"`
		AIDevs    int64      `json:"ai_devs" doc:"AI developers on top of the paid seats"`
		ExpiresAt *time.Time `json:"expires_at" doc:"when it ends by itself; null: never"`
	}
	revokedData struct {
		UserID *string `json:"user_id" doc:"the person it was given to; null: it was given to the account"`
		AIDevs int64   `json:"ai_devs" doc:"AI developers that are free no more"`
	}
	provisionedData struct {
		UserID   *string `json:"user_id" doc:"the person; null: nobody has signed in with the address yet"`
		Invited  bool    `json:"invited" doc:"whether an invitation was mailed"`
		Approved bool    `json:"approved" doc:"whether the person was let through the gate"`
		Granted  bool    `json:"granted" doc:"whether the AI developers were given"`
		AIDevs   int64   `json:"ai_devs" doc:"AI developers that are given now, or with the acceptance"`
	}
)

// The events of a grant.
var (
	issuedEvent      = event.Declare[issuedData]("grant.issued", audience, "An operator gave free AI developers.")
	revokedEvent     = event.Declare[revokedData]("grant.revoked", audience, "An operator stopped a grant.")
	provisionedEvent = event.Declare[provisionedData]("grant.provisioned", audience, "An operator brought a person in.")
)

// Equipped is sent with the address of a person who now has a grant, so that an open
// invitation need not bring one.
var Equipped = event.DeclareSignal[string]("grant.equipped", "A person has what an invitation would bring along.")
