package account

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// The events of accounts are for the audit trail alone.
var (
	members = event.Audience(policy.ReadAccount)
	payers  = event.Audience(policy.ReadBilling)
)

// RoleChanged is the data of the event that a member has another role.
type RoleChanged struct {
	PreviousRole policy.Role `json:"previous_role" enum:"viewer,member,admin,owner" doc:"the role before"`
	Role         policy.Role `json:"role" enum:"viewer,member,admin,owner" doc:"the role from now on"`
}

// The data of the other events.
type (
	createdData struct {
		Login string `json:"login" doc:"login of the account"`
		Owner string `json:"owner" doc:"login of its first owner"`
	}
	acceptedTermsData struct {
		Version string `json:"version" doc:"version of the terms"`
	}
	switchedData struct {
		From string `json:"from" doc:"id of the account that the session acted on before"`
	}
	projectData struct {
		ProjectURL string `json:"project_url" format:"uri" doc:"where the project can be seen"`
	}
	decidedData struct {
		Decision string  `json:"decision" enum:"approve,reject" doc:"what became of the application"`
		Note     *string `json:"note" doc:"the operator's note to the applicant; null: none"`
	}
	tierSetData struct {
		From string `json:"from" enum:"free,self_hosted,oss_verified" doc:"what the account was entitled to before"`
		To   string `json:"to" enum:"free,self_hosted,oss_verified" doc:"what it is entitled to from now on"`
	}
	seatsSetData struct {
		From int64 `json:"from" doc:"how many AI developers the account paid for before"`
		To   int64 `json:"to" doc:"how many it pays for from now on"`
	}
	capSetData struct {
		From *float64 `json:"from" doc:"US dollars a month before; null: the default"`
		To   *float64 `json:"to" doc:"US dollars a month from now on; null: the default"`
	}
)

// The events of accounts and of the people in them. RoleChangedEvent is
// recorded by the roster as well.
var (
	createdEvent       = event.Declare[createdData]("account.created", members, "First boot made the account and its owner.")
	tierSetEvent       = event.Declare[tierSetData]("account.set_tier", members, "An operator changed what the account is entitled to.")
	seatsSetEvent      = event.Declare[seatsSetData]("account.set_seats", members, "An operator changed how many AI developers the account pays for.")
	capSetEvent        = event.Declare[capSetData]("account.set_spend_cap", payers, "An operator changed what the account may spend a month.")
	ossAppliedEvent    = event.Declare[projectData]("account.oss_verification_applied", payers, "The account applied as an open-source project.")
	ossAmendedEvent    = event.Declare[projectData]("account.oss_verification_amended", payers, "The account changed its application as an open-source project.")
	ossDecidedEvent    = event.Declare[decidedData]("account.oss_verify_decide", payers, "An operator decided about the account's application as an open-source project.")
	acceptedTermsEvent = event.Declare[acceptedTermsData]("user.tos_accepted", members, "A person accepted the terms of service.")
	switchedEvent      = event.Declare[switchedData]("user.account_switched", members, "A session acts on another account of its user from now on.")
	RoleChangedEvent   = event.Declare[RoleChanged]("org_member.role_changed", members, "A member has another role.")
)

// Cap is what an operator lets an account spend in a month.
type Cap struct {
	AccountID string
	Micros    *int64 // micro-dollars; nil: the default
}

// Capped is sent when an operator has set the cap of an account, before the
// event of it is recorded.
var Capped = event.DeclareSignal[Cap]("account.capped", "An operator has changed what an account may spend a month.")
