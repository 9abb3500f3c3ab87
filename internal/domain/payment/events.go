package payment

import (
	"time"

	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is everybody who sees what the account pays.
var audience = event.Audience(policy.ReadBilling)

// The data of events.
type (
	begunData struct {
		Kind     Kind  `json:"kind" doc:"what is to be paid for"`
		Quantity int64 `json:"quantity" doc:"how many"`
	}
	subscriptionData struct {
		Kind      Kind       `json:"kind" doc:"what is paid for"`
		Status    Status     `json:"status" doc:"in Stripe's words"`
		Quantity  int64      `json:"quantity" doc:"how many are subscribed to"`
		Seats     int64      `json:"seats" doc:"how many count now; 0 of a donor"`
		InForce   bool       `json:"in_force" doc:"whether it counts"`
		FailedAt  *time.Time `json:"payment_failed_at" doc:"since when a payment is waited for; null: none is"`
		CancelsAt *time.Time `json:"cancels_at" doc:"when it ends by itself; null: it goes on"`
	}
	graceData struct {
		Kind   Kind      `json:"kind" doc:"what is paid for"`
		EndsAt time.Time `json:"ends_at" doc:"from when on it does not count, unless something is paid"`
	}
	planData struct {
		TierFrom  people.Tier `json:"tier_from" doc:"the tier before"`
		Tier      people.Tier `json:"tier" doc:"the tier from now on"`
		SeatsFrom int64       `json:"seats_from" doc:"the account's AI developers before"`
		Seats     int64       `json:"seats" doc:"from now on"`
	}
)

// The events of payment. The object of a subscription's is its id at Stripe, of the others the
// account.
var (
	begunEvent    = event.Declare[begunData]("billing.checkout_begun", audience, "Somebody went to pay for a subscription.")
	portalEvent   = event.Declare[event.None]("billing.portal_opened", audience, "Somebody went to look after the account's payment.")
	ChangedEvent  = event.Declare[subscriptionData]("billing.subscription_changed", audience, "A subscription of the account changed.")
	entitledEvent = event.Declare[planData]("billing.plan_changed", audience,
		"What the account pays for has changed its tier or its AI developers.")
	// GraceEndsEvent is recorded once, three days before a subscription ends whose payment has failed.
	GraceEndsEvent = event.Declare[graceData]("billing.grace_ends", audience, "A subscription whose payment has failed ends soon.")
)
