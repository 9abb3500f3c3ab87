package onboarding

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// advancedData is the data of advancedEvent.
type advancedData struct {
	Event string `json:"event" doc:"what somebody reported"`
	State string `json:"state" doc:"how far the account has come by it"`
}

// advancedEvent is an event of the account.
var advancedEvent = event.Declare[advancedData]("onboarding.advanced", event.Audience(policy.ReadAccount), "The account has come further.")
