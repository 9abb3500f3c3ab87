package notary

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// acceptedData is the data of the event that a break was accepted.
type acceptedData struct {
	Seq     int64  `json:"seq" doc:"place in the chain that was noted"`
	NotedAt string `json:"noted_at" doc:"when it was noted"`
	Found   string `json:"found" doc:"what does not hold"`
	Reason  string `json:"reason" doc:"why it was accepted"`
}

// acceptedEvent is about the hash that was noted. Who reads the trail hears
// of it.
var acceptedEvent = event.Declare[acceptedData]("audit_break.accepted", event.Audience(policy.ReadSessions),
	"The operator accepted the account's chain of the record, which is not what was noted of it, as it is.")
