package stripe

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"
)

// Tolerance is how old a signature may be, and how far ahead of this server's clock.
const Tolerance = 5 * time.Minute

// Header is the header of the signature.
const Header = "Stripe-Signature"

// Errors of Event.
var (
	ErrForged = errors.New("the event is not signed with the secret of the endpoint")
	ErrStale  = errors.New("the signature of the event is older than five minutes, or of a time to come")
	ErrForm   = errors.New("the body is no event")
)

// Event is what Stripe says has happened. It only says whom to look at: events come late, twice
// and in any order.
type Event struct {
	ID       string
	Type     string // such as customer.subscription.updated
	Customer string // empty: it is about none
}

// Read reads the body of a delivery, if it is signed with the secret of the endpoint. It fails
// with ErrForged, ErrStale and ErrForm.
func Read(body []byte, signature, secret string, now time.Time) (Event, error) {
	if secret == "" || webhook.ValidatePayloadIgnoringTolerance(body, signature, secret) != nil {
		return Event{}, ErrForged
	}
	if signed, ok := signedAt(signature); !ok || now.Sub(signed).Abs() > Tolerance {
		return Event{}, ErrStale
	}
	var e struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data struct {
			Object struct {
				ID       string          `json:"id"`
				Object   string          `json:"object"`
				Customer json.RawMessage `json:"customer"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &e); err != nil || !known(e.ID, "evt_") || e.Type == "" || len(e.Type) > 200 {
		return Event{}, ErrForm
	}
	out := Event{ID: e.ID, Type: e.Type}
	switch o := e.Data.Object; {
	case o.Object == "customer":
		out.Customer = o.ID
	case len(o.Customer) > 0 && o.Customer[0] == '{': // where the endpoint has it expanded
		var whole struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(o.Customer, &whole) == nil {
			out.Customer = whole.ID
		}
	case len(o.Customer) > 0:
		_ = json.Unmarshal(o.Customer, &out.Customer) // null: it is about none
	}
	if !known(out.Customer, "cus_") {
		out.Customer = ""
	}
	return out, nil
}

// known tells whether a text is an id of Stripe's.
func known(id, prefix string) bool {
	return strings.HasPrefix(id, prefix) && len(id) <= 255 && plain(id) != ""
}

// signedAt is the time that a signature is of; false for a header with none or two, of which the
// library would take the last.
func signedAt(signature string) (at time.Time, ok bool) {
	for part := range strings.SplitSeq(signature, ",") {
		text, is := strings.CutPrefix(part, "t=")
		if !is {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ok {
			return time.Time{}, false
		}
		at, ok = time.Unix(n, 0), true
	}
	return at, ok
}
