package escalation

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Topic is the list of escalations that clients follow.
var Topic = &event.Topic{Name: "escalations", Scope: policy.ReadTasks, Fixed: true}

// The data of events.
type (
	raisedData struct {
		AskID        *string `json:"ask_id" doc:"the ask it came from; null without one"`
		Category     string  `json:"category" doc:"slug of what sort of question it is"`
		EscalationID string  `json:"escalation_id" doc:"the escalation"`
		IssueID      *string `json:"issue_id" doc:"the issue of the code host that it is about; null without one"`
		Reason       string  `json:"reason" doc:"why a person is asked, without what looks like a secret"`
		Repo         *string `json:"repo" doc:"owner/name; null: it is about no one repository"`
		URL          *string `json:"url" doc:"where to look; null without a pull request or issue"`
	}
	// resolvedData names the ask or the pull request if the end of that resolved the
	// escalation, and the category if a person did.
	resolvedData struct {
		AskID    *string `json:"ask_id,omitempty" doc:"the ask that it was about; left out if something else resolved it"`
		Category *string `json:"category,omitempty" doc:"slug of what sort of question it was; left out unless a person resolved it"`
		Note     *string `json:"note" doc:"what was decided, or has happened; null if nobody said"`
		PRID     *string `json:"pr_id,omitempty" doc:"the pull request that it was about; left out if something else resolved it"`
	}
)

// The events of escalations.
var (
	// RaisedEvent tells of an escalation.
	RaisedEvent   = event.Declare[raisedData]("escalation.raised", Topic, "The platform puts a question to people.")
	ResolvedEvent = event.Declare[resolvedData]("escalation.resolved", Topic, "A person dealt with the escalation, or none has to.")
)
