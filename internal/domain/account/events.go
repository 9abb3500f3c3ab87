package account

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees these events in the audit trail; no topic follows them.
var audience = event.Audience(policy.ReadAccount)

// The data of events.
type (
	createdData struct {
		Login string `json:"login" doc:"login of the account"`
		Owner string `json:"owner" doc:"login of its first owner"`
	}
	acceptedTermsData struct {
		Version string `json:"version" doc:"version of the terms"`
	}
	zoneSetData struct {
		Zone string `json:"zone" doc:"name of the time zone"`
	}
	switchedData struct {
		From string `json:"from" doc:"id of the account that the session acted on before"`
	}
)

// The events of accounts and of the people in them.
var (
	createdEvent       = event.Declare[createdData]("account.created", audience, "First boot made the account and its owner.")
	acceptedTermsEvent = event.Declare[acceptedTermsData]("user.tos_accepted", audience, "A person accepted the terms of service.")
	zoneSetEvent       = event.Declare[zoneSetData]("account.zone_set", audience, "The account has another time zone.")
	switchedEvent      = event.Declare[switchedData]("user.account_switched", audience, "A session acts on another account of "+
		"its user from now on.")
)
