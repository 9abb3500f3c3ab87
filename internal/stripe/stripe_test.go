package stripe_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/proof/till"
	"yardmaster/internal/stripe"
)

// Each call is one that Stripe's own description has, and its answers are read.
func TestCalls(t *testing.T) {
	t.Parallel()
	far := till.Open(t)
	c := stripe.New(far.URL, till.Key)
	id, err := c.Customer(t.Context(), "acme", "")
	if err != nil || id != "cus_till1" {
		t.Fatal(id, err)
	}
	if again, err := c.Customer(t.Context(), "acme", ""); again != id || err != nil {
		t.Errorf("a second time: %q, %v", again, err)
	}
	end := time.Unix(1_800_000_000, 0)
	far.Has(id, till.Subscription{ID: "sub_1", Status: "active", Price: "price_1", Quantity: 4, PeriodEnd: end, Ends: true})
	all, err := c.Subscriptions(t.Context(), id)
	if err != nil || len(all) != 1 || all[0].ID != "sub_1" || all[0].Status != "active" || !all[0].CancelAt.Equal(end) ||
		!slices.Equal(all[0].Items, []stripe.Item{{Price: "price_1", Quantity: 4, PeriodEnd: end}}) {
		t.Errorf("%+v, %v", all, err)
	}
	order := stripe.Order{Customer: id, Account: "acme", Price: "price_1", Quantity: 4, Back: "https://y.example/ui/plan"}
	page, err := c.Checkout(t.Context(), order)
	if err != nil || !strings.HasPrefix(page.URL, "https://checkout.stripe.com/") || page.ExpiresAt.IsZero() {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err = c.Portal(t.Context(), id, "https://y.example/ui/plan"); err != nil || !strings.HasPrefix(page.URL, "https://") {
		t.Errorf("%+v, %v", page, err)
	}
}

// What Stripe says of a failure, which quotes the key, is in no error.
func TestFailures(t *testing.T) {
	t.Parallel()
	far := till.Open(t)
	c := stripe.New(far.URL, till.Key)
	for _, f := range []struct {
		status  int
		refused bool
		busy    bool
	}{
		{401, false, false}, {403, false, false}, {400, true, false}, {404, true, false}, {429, false, true}, {500, false, true},
		{302, false, true},
	} {
		far.Fail(f.status)
		_, err := c.Subscriptions(t.Context(), "cus_1")
		_, refused := errors.AsType[*stripe.RefusedError](err)
		_, busy := errors.AsType[*stripe.BusyError](err)
		if err == nil || refused != f.refused || busy != f.busy || (!refused && !busy) != errors.Is(err, stripe.ErrKey) {
			t.Errorf("%d: %v", f.status, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%d tells %v", f.status, err)
		}
	}
	if calls := far.Calls(); len(calls) != 7 {
		t.Errorf("calls are tried again: %v", calls)
	}
	_, err := stripe.New("http://127.0.0.1:1", till.Key).Customer(t.Context(), "acme", "")
	if _, busy := errors.AsType[*stripe.BusyError](err); !busy || strings.Contains(err.Error(), "canary") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	body := till.Event("evt_1", "customer.subscription.updated", "cus_1")
	signed := till.Sign(body, till.Secret, now)
	old := till.Sign(body, till.Secret, now.Add(-301*time.Second))
	for _, c := range []struct {
		name, body, header, secret string
		want                       error
	}{
		{"genuine", string(body), signed, till.Secret, nil},
		{"just in time", string(body), till.Sign(body, till.Secret, now.Add(-299*time.Second)), till.Secret, nil},
		{"rolled: one of two signatures", string(body), strings.Replace(signed, ",v1=", ",v1=00,v1=", 1), till.Secret, nil},
		{"stale", string(body), old, till.Secret, stripe.ErrStale},
		{"ahead", string(body), till.Sign(body, till.Secret, now.Add(301*time.Second)), till.Secret, stripe.ErrStale},
		{"stale behind a time of now", string(body), "t=1700000000," + old, till.Secret, stripe.ErrStale},
		{"another secret", string(body), till.Sign(body, "whsec_other", now), till.Secret, stripe.ErrForged},
		{"no secret", string(body), till.Sign(body, "", now), "", stripe.ErrForged},
		{"another body", string(body) + " ", signed, till.Secret, stripe.ErrForged},
		{"no signature", string(body), "", till.Secret, stripe.ErrForged},
		{"v0 alone", string(body), "t=1700000000,v0=" + strings.Repeat("00", 32), till.Secret, stripe.ErrForged},
		{"no event", "[]", till.Sign([]byte("[]"), till.Secret, now), till.Secret, stripe.ErrForm},
		{"an id of somebody else", `{"id": "x", "type": "y"}`, till.Sign([]byte(`{"id": "x", "type": "y"}`), till.Secret, now), till.Secret,
			stripe.ErrForm},
	} {
		e, err := stripe.Read([]byte(c.body), c.header, c.secret, now)
		want := stripe.Event{ID: "evt_1", Type: "customer.subscription.updated", Customer: "cus_1"}
		if !errors.Is(err, c.want) || err == nil && e != want {
			t.Errorf("%s: %+v, %v", c.name, e, err)
		}
	}
	for object, want := range map[string]string{
		`{"id": "cus_2", "object": "customer"}`:        "cus_2",
		`{"object": "x", "customer": {"id": "cus_3"}}`: "cus_3",
		`{"object": "x", "customer": null}`:            "",
		`{"object": "x", "customer": "c'; --"}`:        "",
		`{"object": "x"}`:                              "",
	} {
		body := []byte(`{"id": "evt_1", "type": "t", "data": {"object": ` + object + `}}`)
		if e, err := stripe.Read(body, till.Sign(body, till.Secret, now), till.Secret, now); err != nil || e.Customer != want {
			t.Errorf("%s: %+v, %v", object, e, err)
		}
	}
}

// TestMissing: a customer who was deleted is told apart from one of the other mode than the key.
func TestMissing(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{
		"No such customer: 'cus_1'": true,
		"No such customer: 'cus_1'; a similar object exists in live mode, but a test mode key was used to make this request.": false,
	} {
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error": {"code": "resource_missing", "message": %q, "param": "customer", "type": "invalid_request_error"}}`, words)
		}))
		t.Cleanup(far.Close)
		c := stripe.New(far.URL, till.Key)
		_, listed := c.Subscriptions(t.Context(), "cus_1")
		_, opened := c.Portal(t.Context(), "cus_1", "https://y.example")
		_, ordered := c.Checkout(t.Context(), stripe.Order{Customer: "cus_1", Back: "https://y.example"})
		for _, err := range []error{listed, opened, ordered, c.Cancel(t.Context(), "sub_1")} {
			if errors.Is(err, stripe.ErrMissing) != want {
				t.Errorf("%s: %v", words, err)
			}
		}
	}
}
