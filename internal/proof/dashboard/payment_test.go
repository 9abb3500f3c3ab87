//go:build !race

package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/till"
)

// The page of the plan says what is paid for and until when, and refuses an odd number at its field. Stripe's pages
// are not opened here: they are elsewhere.
func TestPlanAndPayment(t *testing.T) {
	t.Parallel()
	far := till.Open(t)
	y, b := begin(t, "--stripe-url", far.URL, "--stripe-secret-key", till.Key, "--stripe-webhook-secret", till.Secret,
		"--stripe-seat-price", "price_seat", "--stripe-donor-price", "price_donor")
	visit(b, "/ui/settings/payment", "Plan and payment")
	b.See("covered")
	b.Fill("Seats", "0")
	b.Button("Pay for seats")
	b.See("must be at least 1")
	call[map[string]any](y, http.MethodPost, "/v1/billing/checkout", `{"kind": "seats", "quantity": 4}`)
	end := time.Now().Add(24 * time.Hour)
	far.Has("cus_till1", till.Subscription{ID: "sub_1", Status: "active", Price: "price_seat", Quantity: 4, PeriodEnd: end, Ends: true})
	stripeEvent(y, "evt_1")
	b.See("4 seats")
	b.See("Ends")
	b.See("Cards, invoices and subscriptions")
	b.See("Become a donor to open source")
	shoot(b, "payment")
	far.Has("cus_till1", till.Subscription{ID: "sub_1", Status: "past_due", Price: "price_seat", Quantity: 4, PeriodEnd: end})
	stripeEvent(y, "evt_2")
	b.See("The plan stands for 14 days after that")
	shoot(b, "payment-failed")
}

// stripeEvent has Stripe deliver an event about the customer.
func stripeEvent(y *rig.Yard, id string) {
	y.T.Helper()
	body := till.Event(id, "customer.subscription.updated", "cus_till1")
	resp, text := y.Send(http.MethodPost, "/v1/billing/stripe/webhook", "", string(body),
		"Stripe-Signature", till.Sign(body, till.Secret, time.Now()))
	if resp.StatusCode != http.StatusOK {
		y.T.Fatalf("%d: %s", resp.StatusCode, text)
	}
}
