package webhook

import (
	"yardmaster/internal/event"
	"yardmaster/internal/hook"
	"yardmaster/internal/policy"
)

// audience is the readers of events about webhooks.
var audience = event.Audience(policy.ReadWebhooks)

// The data of events. None holds an address or a secret.
type (
	createdData struct {
		Events []string `json:"events" doc:"types of events that are sent there"`
		Name   string   `json:"name" doc:"of the webhook"`
		URL    string   `json:"url" doc:"its address, masked"`
	}
	deletedData struct {
		Name string `json:"name" doc:"of the webhook"`
	}
	unhealthyData struct {
		EventID string  `json:"event_id" doc:"the event that used up its attempts"`
		Name    string  `json:"name" doc:"of the webhook; that of a person is called after them"`
		UserID  *string `json:"user_id" doc:"the person whose own webhook it is; null: it is the account's"`
	}
	ownData struct {
		Format hook.Format `json:"format" doc:"what it understands"`
		URL    string      `json:"url" doc:"its address, masked"`
	}
	testedData struct {
		DeliveryID string `json:"delivery_id" doc:"the delivery"`
		EventID    string `json:"event_id" doc:"the event that is sent"`
		Name       string `json:"name" doc:"of the webhook"`
	}
)

// The events of webhooks.
var (
	createdEvent    = event.Declare[createdData]("webhook.created", audience, "A webhook was made.")
	deletedEvent    = event.Declare[deletedData]("webhook.deleted", audience, "A webhook was deleted, with its address and its secret.")
	ownSetEvent     = event.Declare[ownData]("notification.webhook_set", audience, "A person named the address of their own webhook.")
	ownClearedEvent = event.Declare[event.None]("notification.webhook_cleared", audience, "The own webhook of a person was forgotten.")
	UnhealthyEvent  = event.Declare[unhealthyData](
		"webhook.unhealthy",
		audience,
		"An event used up its attempts, and nothing more is sent there.",
	)
	RevivedEvent     = event.Declare[deletedData]("webhook.revived", audience, "Events are sent to the webhook again.")
	testedEvent      = event.Declare[testedData]("webhook.tested", audience, "A ping is sent to the webhook.")
	redeliveredEvent = event.Declare[testedData]("webhook.redelivered", audience, "An event is sent to the webhook once more.")
)
