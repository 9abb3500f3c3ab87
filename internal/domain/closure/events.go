package closure

import (
	"time"

	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

var audience = event.Audience(policy.ReadAccount)

type askedData struct {
	EndsAt time.Time `json:"ends_at" doc:"until then any owner can take it back"`
}

// The events of the deletion of an account, which is their object. The last one, account.deleted, is
// in the platform's own record.
var (
	AskedEvent = event.Declare[askedData]("account.deletion_asked", audience, "An owner has asked to have the account deleted.")
	TakenBack  = event.Declare[event.None]("account.deletion_taken_back", audience, "An owner has taken back that the account is deleted.")
	begunEvent = event.Declare[event.None]("account.deletion_begun", audience,
		"The account is being deleted: its work is cancelled, and nobody can take it back.")
)
