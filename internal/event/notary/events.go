package notary

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// acceptedData is the data of acceptedEvent.
type acceptedData struct {
	Seq     int64  `json:"seq" doc:"place in the chain that was noted"`
	NotedAt string `json:"noted_at" doc:"when it was noted"`
	Found   string `json:"found" doc:"what does not hold"`
	Reason  string `json:"reason" doc:"why it was accepted"`
}

// acceptedEvent records that an operator accepted a break. Its subject is the hash
// in the note. It is visible to those who may read the audit trail.
var acceptedEvent = event.Declare[acceptedData]("audit_break.accepted", event.Audience(policy.ReadSessions),
	"The operator accepted the account's chain of the record, which is not what was noted of it, as it is.")
