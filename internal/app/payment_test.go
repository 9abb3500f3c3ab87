package app

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/till"
)

// billing is what an account has and pays for, as far as this test looks.
type billing struct {
	Tier  string
	Seats int64
	Donor bool `json:"oss_donor"`
}

// An account of a server that takes payment pays for seats at Stripe. Then its private repositories
// are covered, and the pages of Stripe open; nothing of the server's key is told.
func TestPaymentCoversPrivateRepositories(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		far := till.Open(t)
		y := start(t, e, append(flags, "--stripe-url", far.URL, "--stripe-secret-key", till.Key, "--stripe-webhook-secret", till.Secret,
			"--stripe-seat-price", "price_seat", "--stripe-donor-price", "price_donor")...)
		operator := y.operator()
		y.send("PUT", "/v1/admin/accounts/"+y.acct+"/tier", operator, `{"tier": "free", "confirm": true}`).want(200)
		y.send("PUT", "/v1/admin/accounts/"+y.acct+"/seats", operator, `{"seats": 1, "confirm": true}`).want(200)
		y.push("acme/web", map[string]string{"README": "hello\n"})
		refused := y.send("PATCH", "/v1/repos/acme/web", y.owner, `{"enabled": true}`).want(402)
		if !bytes.Contains(refused.body, []byte("billing.checkout")) {
			t.Errorf("the way out is not named: %s", refused.body)
		}
		var page struct{ URL string }
		decode(t, y.send("POST", "/v1/billing/checkout", y.owner, `{"kind": "seats", "quantity": 3}`).want(201), &page)
		if !strings.HasPrefix(page.URL, "https://checkout.stripe.com/") {
			t.Errorf("the page is %q", page.URL)
		}
		y.send("POST", "/v1/billing/portal", y.owner, "").want(201)
		end := time.Now().Add(24 * time.Hour)
		far.Has("cus_till1", till.Subscription{ID: "sub_1", Status: "active", Price: "price_seat", Quantity: 3, PeriodEnd: end},
			till.Subscription{ID: "sub_2", Status: "active", Price: "price_donor", Quantity: 1, PeriodEnd: end})
		nudge := func(id, want string) {
			t.Helper()
			body := till.Event(id, "customer.subscription.created", "cus_till1")
			var out struct{ Kind string }
			decode(t, y.send("POST", "/v1/billing/stripe/webhook", "", string(body),
				"Stripe-Signature", till.Sign(body, till.Secret, time.Now())).want(http.StatusOK), &out)
			if out.Kind != want {
				t.Errorf("the event is %s, not %s", out.Kind, want)
			}
		}
		nudge("evt_1", "accepted")
		nudge("evt_1", "known")
		patience.Until(t, "what was paid counts", func() bool {
			var now billing
			decode(t, y.send("GET", "/v1/billing", y.owner, "").want(200), &now)
			return now == billing{Tier: "team", Seats: 3, Donor: true}
		})
		y.send("PATCH", "/v1/repos/acme/web", y.owner, `{"enabled": true}`).want(200)
		told := y.send("GET", "/v1/audit/events?per_page=100", y.owner, "").want(200)
		if !bytes.Contains(told.body, []byte("billing.plan_changed")) || bytes.Contains(told.body, []byte("canary")) {
			t.Errorf("the record is %s", told.body)
		}
		failuresAreToldOnce(y, far, nudge, end)
	})
}

// failuresAreToldOnce: who decides hears that a payment has failed, and nothing more of it while
// its tries fail.
func failuresAreToldOnce(y *yard, far *till.Till, nudge func(eventID, want string), end time.Time) {
	for _, now := range []struct{ seats, donor string }{{"past_due", "active"}, {"unpaid", "active"}, {"unpaid", "past_due"}} {
		far.Has("cus_till1", till.Subscription{ID: "sub_1", Status: now.seats, Price: "price_seat", Quantity: 3, PeriodEnd: end},
			till.Subscription{ID: "sub_2", Status: now.donor, Price: "price_donor", Quantity: 1, PeriodEnd: end})
		nudge("evt_"+now.seats+now.donor, "accepted")
		patience.Until(y.t, now.seats+" and "+now.donor+" are read", func() bool {
			var out struct {
				Subscriptions []struct{ Kind, Status string }
			}
			decode(y.t, y.send("GET", "/v1/billing", y.owner, "").want(200), &out)
			is := map[string]string{}
			for _, s := range out.Subscriptions {
				is[s.Kind] = s.Status
			}
			return is["seats"] == now.seats && is["oss_donor"] == now.donor
		})
	}
	var inbox struct {
		Data []struct {
			Title string
			Count int
		}
	}
	patience.Until(y.t, "both failures are told", func() bool {
		decode(y.t, y.send("GET", "/v1/notifications", y.owner, "").want(200), &inbox)
		return len(inbox.Data) == 2
	})
	for _, n := range inbox.Data {
		if n.Title != "A payment has failed" || n.Count != 1 {
			y.t.Errorf("told %d times: %s", n.Count, n.Title)
		}
	}
}
