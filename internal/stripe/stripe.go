// Package stripe takes payment through Stripe: customers, their subscriptions, the pages on which
// they pay and look after them, and the events that Stripe delivers. Stripe's own library makes
// the calls. What it says of a failure is not passed on, because it quotes what it was sent.
package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v85"
)

// Address is that of the API.
const Address = "https://api.stripe.com"

// patience is how long a call may take.
const patience = 20 * time.Second

// ErrKey says that Stripe does not take the secret key, or does not let it do this.
var ErrKey = errors.New("stripe refuses the secret key")

// ErrMissing says that Stripe has what a call names no more: a customer or a subscription that was
// deleted there.
var ErrMissing = errors.New("stripe has no such customer or subscription any more")

// BusyError says that Stripe did not answer, or limits the calls of the key. The same call works
// later.
type BusyError struct{ Why string }

// Error implements error.
func (e *BusyError) Error() string { return "stripe did not answer: " + e.Why }

// RefusedError says that Stripe refuses a call for good.
type RefusedError struct {
	Status    int
	Code      string // such as resource_missing; may be empty
	Param     string // the parameter that is wrong; may be empty
	RequestID string // by which the operator finds the call in Stripe's log
}

// Error implements error.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("stripe refuses the call with %d", e.Status)
	for _, more := range []struct{ name, value string }{{"code", e.Code}, {"parameter", e.Param}, {"request", e.RequestID}} {
		if more.value != "" {
			text += ", " + more.name + " " + more.value
		}
	}
	return text
}

// Subscription is a subscription as Stripe has it now.
type Subscription struct {
	ID       string
	Status   string // in Stripe's words
	Created  time.Time
	CancelAt *time.Time // when it ends by itself; nil: it goes on
	Items    []Item
}

// Item is what is paid for by a subscription.
type Item struct {
	Price     string
	Quantity  int64
	PeriodEnd time.Time // of the period under way
}

// Order is what somebody is about to pay for.
type Order struct {
	Customer, Account, Price string
	Quantity                 int64
	Back                     string // where the browser goes after all
}

// Page is a page of Stripe that somebody is sent to.
type Page struct {
	ID, URL   string
	ExpiresAt time.Time // zero: Stripe does not say
}

// Client calls the API. Safe for concurrent use.
type Client struct{ api *sdk.Client }

// New makes a Client of the API at an address. It follows no redirect, which would take the key
// elsewhere, and tries nothing twice.
func New(address, key string) *Client {
	return &Client{api: sdk.NewClient(key, sdk.WithBackends(sdk.NewBackendsWithConfig(&sdk.BackendConfig{
		URL: &address, MaxNetworkRetries: sdk.Int64(0), EnableTelemetry: sdk.Bool(false),
		LeveledLogger: &sdk.LeveledLogger{Level: sdk.LevelNull},
		HTTPClient: &http.Client{
			Timeout:       patience,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})))}
}

// Customer makes the customer of an account, instead of one that was deleted; empty: it had none.
// Two such calls make one within a day.
// It fails with ErrKey, *BusyError and *RefusedError, as the other methods do; those that name a
// customer or a subscription fail with ErrMissing too.
func (c *Client) Customer(ctx context.Context, account, deleted string) (id string, err error) {
	p := &sdk.CustomerCreateParams{Metadata: map[string]string{"account": account}}
	key := "yardmaster-customer-" + account
	if deleted != "" {
		key += "-" + deleted
	}
	p.SetIdempotencyKey(key)
	made, err := c.api.V1Customers.Create(ctx, p)
	if err != nil {
		return "", judge(err)
	}
	if !known(made.ID, "cus_") {
		return "", errForm
	}
	return made.ID, nil
}

// Subscriptions lists all subscriptions that a customer has or had.
func (c *Client) Subscriptions(ctx context.Context, customer string) ([]Subscription, error) {
	p := &sdk.SubscriptionListParams{Customer: &customer, Status: sdk.String("all")}
	p.Limit = sdk.Int64(100)
	var out []Subscription
	list := c.api.V1Subscriptions.List(ctx, p)
	for s, err := range list.All(ctx) {
		if err != nil {
			return nil, judge(err)
		}
		out = append(out, subscription(s))
	}
	if err := list.Err(); err != nil {
		return nil, judge(err)
	}
	// The library takes whatever is no failure, such as a redirect, for a list without rows.
	var kind struct{ Object string }
	last := list.LastResponse()
	if last == nil || last.StatusCode != http.StatusOK || json.Unmarshal(last.RawJSON, &kind) != nil || kind.Object != "list" {
		return nil, errForm
	}
	return out, nil
}

// Cancel ends a subscription at once. Nothing is paid back.
func (c *Client) Cancel(ctx context.Context, subscription string) error {
	s, err := c.api.V1Subscriptions.Cancel(ctx, subscription, &sdk.SubscriptionCancelParams{})
	if err != nil {
		return judge(err)
	}
	if s.ID != subscription {
		return errForm
	}
	return nil
}

// errForm says that an answer is not what was asked for, as where something stands in between.
var errForm = &BusyError{Why: "the answer is none of Stripe's"}

func subscription(s *sdk.Subscription) Subscription {
	out := Subscription{ID: s.ID, Status: string(s.Status), Created: time.Unix(s.Created, 0)}
	if s.CancelAt > 0 {
		out.CancelAt = new(time.Unix(s.CancelAt, 0))
	}
	if s.Items == nil {
		return out
	}
	for _, i := range s.Items.Data {
		end := time.Unix(i.CurrentPeriodEnd, 0)
		if s.CancelAtPeriodEnd && out.CancelAt == nil {
			out.CancelAt = &end
		}
		if i.Price != nil {
			out.Items = append(out.Items, Item{Price: i.Price.ID, Quantity: i.Quantity, PeriodEnd: end})
		}
	}
	return out
}

// Checkout opens a page on which a subscription is paid for.
func (c *Client) Checkout(ctx context.Context, o Order) (Page, error) {
	s, err := c.api.V1CheckoutSessions.Create(ctx, &sdk.CheckoutSessionCreateParams{
		Mode: sdk.String(string(sdk.CheckoutSessionModeSubscription)), Customer: &o.Customer, ClientReferenceID: &o.Account,
		LineItems:        []*sdk.CheckoutSessionCreateLineItemParams{{Price: &o.Price, Quantity: &o.Quantity}},
		SubscriptionData: &sdk.CheckoutSessionCreateSubscriptionDataParams{Metadata: map[string]string{"account": o.Account}},
		SuccessURL:       &o.Back, CancelURL: &o.Back,
	})
	if err != nil {
		return Page{}, judge(err)
	}
	return page(s.ID, s.URL, s.ExpiresAt)
}

// Portal opens the page on which a customer looks after cards, invoices and subscriptions.
func (c *Client) Portal(ctx context.Context, customer, back string) (Page, error) {
	s, err := c.api.V1BillingPortalSessions.Create(ctx, &sdk.BillingPortalSessionCreateParams{Customer: &customer, ReturnURL: &back})
	if err != nil {
		return Page{}, judge(err)
	}
	return page(s.ID, s.URL, 0)
}

func page(id, url string, expires int64) (Page, error) {
	if !strings.HasPrefix(url, "https://") {
		return Page{}, errForm
	}
	out := Page{ID: id, URL: url}
	if expires > 0 {
		out.ExpiresAt = time.Unix(expires, 0)
	}
	return out, nil
}

// judge says what an error of the library means, without its words.
func judge(err error) error {
	e, ok := errors.AsType[*sdk.Error](err)
	switch {
	case !ok && errors.Is(err, context.DeadlineExceeded):
		return &BusyError{Why: "it takes too long"}
	case !ok:
		return &BusyError{Why: "the connection fails, or the answer is none of Stripe's"}
	case e.HTTPStatusCode == http.StatusUnauthorized || e.HTTPStatusCode == http.StatusForbidden:
		return ErrKey
	case e.HTTPStatusCode == http.StatusTooManyRequests || e.HTTPStatusCode == http.StatusConflict || e.HTTPStatusCode >= 500:
		return &BusyError{Why: fmt.Sprintf("it answers %d", e.HTTPStatusCode)}
	case e.Code == sdk.ErrorCodeResourceMissing && (e.Param == "customer" || e.Param == "id") && !strings.Contains(e.Msg, "similar object"):
		return ErrMissing // and not one of the other mode, live or test, than the key
	}
	return &RefusedError{Status: e.HTTPStatusCode, Code: plain(string(e.Code)), Param: plain(e.Param), RequestID: plain(e.RequestID)}
}

// plain keeps a word of Stripe's only if it is one: what it is may otherwise be anything.
func plain(s string) string {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-[]", r)) {
			return ""
		}
	}
	return s[:min(len(s), 80)]
}
