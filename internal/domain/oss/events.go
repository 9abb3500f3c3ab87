package oss

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees these events in the audit trail; no topic follows them.
var audience = event.Audience(policy.ReadBilling)

// The data of events.
type (
	projectData struct {
		ProjectURL string `json:"project_url" format:"uri" doc:"where the project can be seen"`
	}
	decidedData struct {
		Decision Decision `json:"decision" doc:"what became of the application"`
		Note     *string  `json:"note" doc:"the operator's note to the applicant; null: none"`
	}
)

// The events of an application.
var (
	appliedEvent = event.Declare[projectData]("account.oss_verification_applied", audience,
		"The account applied as an open-source project.")
	amendedEvent = event.Declare[projectData]("account.oss_verification_amended", audience, "The account changed its "+
		"application as an open-source project.")
	decidedEvent = event.Declare[decidedData]("account.oss_verify_decide", audience, "An operator decided about the account's "+
		"application as an open-source project.")
)
