package issue

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

var audience = event.Audience(policy.ReadIssues)

// The data of events.
type (
	filedData struct {
		AskID   string `json:"ask_id" doc:"the ask"`
		Number  int64  `json:"number" doc:"number of the issue in its repository"`
		Trusted bool   `json:"trusted" doc:"whether work may come of it without a person"`
	}
	triagedData struct {
		AskID  string `json:"ask_id" doc:"the ask"`
		Triage string `json:"triage" enum:"filed,triaged,dropped,escalated" doc:"the new state"`
	}
	requestedData struct {
		Title string `json:"title" doc:"title of the issue"`
	}
	escalatedData struct {
		Repo         string  `json:"repo" doc:"owner/name"`
		IssueID      string  `json:"issue_id" doc:"the issue"`
		AskID        *string `json:"ask_id" doc:"its ask; null without one"`
		EscalationID string  `json:"escalation_id" doc:"the question to a person"`
		Category     string  `json:"category" doc:"slug of what sort of question it is"`
		Reason       string  `json:"reason" doc:"why a person is asked, without what looks like a secret"`
		URL          *string `json:"url" doc:"address of the issue, for people; null until the code host has opened it"`
	}
	handoffData struct {
		HandoffID  string `json:"handoff_id" doc:"id of the hand-off"`
		Repo       string `json:"repo" doc:"owner/name"`
		IssueID    string `json:"issue_id" doc:"the issue"`
		Number     int64  `json:"number" doc:"its number in the repository"`
		URL        string `json:"url" doc:"its address, for people"`
		Title      string `json:"title" doc:"its title"`
		Reason     string `json:"reason" doc:"why it is handed off"`
		WebhookRef string `json:"webhook_ref" doc:"name of the webhook"`
	}
	deliveredData struct {
		HandoffID  string `json:"handoff_id" doc:"id of the hand-off"`
		WebhookRef string `json:"webhook_ref" doc:"name of the webhook"`
	}
	failedData struct {
		HandoffID   string `json:"handoff_id" doc:"id of the hand-off"`
		WebhookRef  string `json:"webhook_ref" doc:"name of the webhook"`
		RequestedBy string `json:"requested_by" doc:"who handed the issue off: user:<id>, pat:<id>, or system for the policy file"`
		Reason      string `json:"reason" doc:"why the webhook does not have it"`
	}
)

// The events of issues.
var (
	FiledEvent     = event.Declare[filedData]("issue.filed", audience, "An ask was filed for the issue.")
	triagedEvent   = event.Declare[triagedData]("issue.triage_changed", audience, "The ask of the issue has moved.")
	requestedEvent = event.Declare[requestedData]("issue.requested", audience, "The code host was asked to open an issue.")
	EscalatedEvent = event.Declare[escalatedData]("issue.escalated", audience, "A person is to decide about the issue.")
	// HandoffEvent tells which webhook an issue is handed to.
	HandoffEvent   = event.Declare[handoffData]("issue.handoff", audience, "The issue was handed to a webhook.")
	DeliveredEvent = event.Declare[deliveredData]("issue.handoff_delivered", audience, "The webhook has answered that it has the issue.")
	FailedEvent    = event.Declare[failedData]("issue.handoff_failed", audience,
		"The webhook does not have the issue: it was not told, or did not answer that it has.")
)

// HandoffSettled are the events after which nobody has to see to a hand-off that failed.
var HandoffSettled = []event.Any{DeliveredEvent, HandoffEvent, EscalatedEvent, FiledEvent}
