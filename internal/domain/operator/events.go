package operator

import (
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Decisions of operators are recorded in the account's audit trail alone; no topic
// follows them.
var (
	members = event.Audience(policy.ReadAccount)
	payers  = event.Audience(policy.ReadBilling)
)

// The data of events.
type (
	tierSetData struct {
		From people.Tier `json:"from" doc:"what the account was entitled to before"`
		To   people.Tier `json:"to" doc:"what it is entitled to from now on"`
	}
	seatsSetData struct {
		From int64 `json:"from" doc:"how many AI developers the account paid for before"`
		To   int64 `json:"to" doc:"how many it pays for from now on"`
	}
	appointedData struct {
		Operator bool `json:"operator" doc:"whether the person runs the platform from now on"`
	}
	capSetData struct {
		From *float64 `json:"from" doc:"US dollars a month before; null: the default"`
		To   *float64 `json:"to" doc:"US dollars a month from now on; null: the default"`
	}
)

// The events of operators' settings. A change of a member's role is an event of
// package member.
var (
	appointedEvent = event.Declare[appointedData]("user.operator_set", event.Audience(policy.AdminReadPlat),
		"Whoever has the server's machine made a person an operator, or no longer one.")
	tierSetEvent  = event.Declare[tierSetData]("account.set_tier", members, "An operator changed what the account is entitled to.")
	seatsSetEvent = event.Declare[seatsSetData]("account.set_seats", members, "An operator changed how many AI developers the "+
		"account pays for.")
	capSetEvent = event.Declare[capSetData]("account.set_spend_cap", payers, "An operator changed what the account may spend a month.")
)

// Cap is an operator's cap on the monthly spending of an account.
type Cap struct {
	AccountID string
	Micros    *int64 // micro-dollars; nil: the default
}

// Capped is sent when an operator has set the cap of an account, before the event is
// recorded.
var Capped = event.DeclareSignal[Cap]("account.capped", "An operator has changed what an account may spend a month.")
