package quota

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees these events in the audit trail; no topic follows them.
var audience = event.Audience(policy.ReadAccount)

// NearlyFull is the data of NearlyFullEvent.
type NearlyFull struct {
	Thing string `json:"thing" enum:"git_bytes,object_bytes,record_bytes,records,repos,tokens" doc:"what is nearly full"`
	Used  int64  `json:"used" doc:"how much of it the account has"`
	Most  int64  `json:"most" doc:"how much it may have"`
}

type setData struct {
	From Settings `json:"from" doc:"what operators had set before"`
	To   Settings `json:"to" doc:"what is set from now on"`
}

// The events of quotas.
var (
	setEvent = event.Declare[setData]("account.quota_set", audience, "An operator changed how much the account may store and change.")
	// NearlyFullEvent is recorded once when an account comes to have 80 % of what it may have.
	NearlyFullEvent = event.Declare[NearlyFull]("account.quota_nearly_full", audience,
		"The account has four fifths of what it may have of something.")
)
