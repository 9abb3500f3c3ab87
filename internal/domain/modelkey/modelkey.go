// Package modelkey keeps an account's pool of keys of model providers, the pools that its
// members have for themselves, and the prices that the account sets. A key of a person
// is used for what that person asked for, and for nothing else. A key is sealed when it is added and never shown again; the
// model gateway alone opens it, for a call.
//
//   - modelkey.go: the keys, the Service, and the addresses that keys may be sent to
//   - choice.go: which keys a call may go over, and in which order
//   - health.go: which keys rest, and until when; pause.go: when all that fit rest
//   - lent.go: keys of other accounts that a repository may use
//   - price.go: prices
//   - ops.go, events.go: capabilities and events; upkeep.go: those about a key that is
//     there, and about what a provider says; place.go: its place; personal.go: those about keys of people;
//     pref.go: those about the model that a person likes best
//   - store.go, store_price.go, store_pref.go, store_health.go: the statements
package modelkey

import (
	"context"
	"net/url"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/dial"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// Kind is how calls over a key are paid: each call, or a subscription.
type Kind string

// Kinds of keys.
const (
	Metered      Kind = "metered"
	Subscription Kind = "subscription"
)

// Values lists both kinds.
func (Kind) Values() []string { return []string{string(Metered), string(Subscription)} }

// Status is what is known of a key.
type Status string

// Statuses of a key.
const (
	Unverified = "unverified"
	OK         = "ok"
	Failing    = "failing" // the provider refused it at its last use
)

// Values lists all statuses.
func (Status) Values() []string { return []string{Unverified, OK, Failing} }

// BillingKey is a key as clients see it, without the key itself.
type BillingKey struct {
	_              struct{}     `doc:"A model provider key, masked." schema:"BillingKey"`
	ID             string       `json:"id" format:"uuid" doc:"id of the key"`
	Provider       llm.Provider `json:"provider" doc:"whose API it is for; scripted is the offline one of this server"`
	Label          string       `json:"label" example:"Team key" doc:"name to tell it by"`
	Masked         string       `json:"masked" example:"…4f2a" doc:"its last characters, to tell it by"`
	BaseURL        *string      `json:"base_url" format:"uri" example:"null" doc:"address of the provider compatible or azure; null for the others"`
	Kind           Kind         `json:"kind" doc:"metered: each call costs; subscription: calls are paid for otherwise"`
	Capacity       *int64       `json:"capacity" example:"8" doc:"calls at once over the key, over all nodes together; further ones go over another key or wait; null: no limit is known"`
	Priority       int64        `json:"priority" example:"100" doc:"the lowest is used first"`
	CapUSD         *float64     `json:"cap_usd" example:"50" doc:"what calls over it may cost in a month, in US dollars, which billing.key_budget_set sets; null: no cap"`
	Status         Status       `json:"status" example:"ok" doc:"unverified, ok or failing; one that is failing is used where no other fits, and is ok once it works"`
	Price          *ModelPrice  `json:"price" doc:"of whatever is called over it; null: what the price tables say"`
	Rest           *KeyRest     `json:"rest" example:"null" doc:"why no call goes over it now, and until when; null: calls do"`
	LastVerifiedAt *time.Time   `json:"last_verified_at" doc:"when it last began to work, or was verified; null: never"`
	LastError      *string      `json:"last_error" example:"null" doc:"what the provider said when it refused it; null unless it is failing"`
	CreatedAt      time.Time    `json:"created_at" doc:"when it was added"`
}

// Templates changes templates when a key is added.
type Templates interface {
	// Adopt sets the model of those templates of tx.Account that use the new key and
	// name no model, and returns their names.
	Adopt(tx *db.Tx, keyID string, of llm.Provider, baseURL, model string) ([]string, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB   *db.DB
	Ring *seal.Keyring
	Hub  *event.Hub
	// PlainHTTP lets base addresses be without TLS elsewhere than on this machine, for
	// operators with a network of their own.
	PlainHTTP bool
	// Guard judges base addresses.
	Guard *dial.Guard
	// Probe asks providers about keys, without spending anything.
	Probe     llm.Probe
	Templates Templates
}

// Service keeps the keys and the prices.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Open unseals a key for a call. It fails if no key of the server opens it.
func (s *Service) Open(k Key) (llm.Route, error) {
	plain, err := s.Ring.Unseal(purpose(k.owner), k.sealed)
	if err != nil {
		return llm.Route{}, err
	}
	return llm.Route{
		ID: k.ID, Version: k.version, Provider: k.Provider, BaseURL: k.BaseURL, Key: string(plain), Lent: k.lender(), Capped: k.capped,
	}, nil
}

// owner is whose pool a key is in: an account's, or that of a person in an account.
func owner(account, user string) string {
	if user == "" {
		return account
	}
	return account + "/" + user
}

// Values opens every key of tx.Account, those of persons too: what must stand in no copy of
// what was asked and answered.
func (s *Service) Values(tx *db.Tx) ([]string, error) {
	rows, err := kept.All(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	values := make([]string, 0, len(rows))
	for _, r := range rows {
		route, err := s.Open(r.pooled())
		if err != nil {
			return nil, err
		}
		values = append(values, route.Secrets()...)
	}
	return values, nil
}

// purpose is the place that a key is sealed for.
func purpose(owner string) string { return "provider-key/" + owner }

// seal seals a key for its owner.
func (s *Service) seal(owner, key string) string { return s.Ring.Seal(purpose(owner), []byte(key)) }

// mask is the last four characters of a key of at least 12, and only a sign for a
// shorter one.
func mask(key string) string {
	switch {
	case key == "":
		return ""
	case len(key) < 12:
		return "…"
	}
	return "…" + key[len(key)-4:]
}

// checkBaseURL refuses an address that keys must not be sent to, with a fault of the
// field base_url. It asks name servers.
func (s *Service) checkBaseURL(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return fault.Field("base_url", "must be an https address without user, query and fragment")
	}
	if _, wrong := s.Guard.Destination(ctx, address); wrong != "" {
		return fault.Field("base_url", wrong)
	}
	if u.Scheme == "http" && !s.PlainHTTP && !dial.Loopback(u.Hostname()) {
		return fault.Field("base_url", "must be https, or http on a loopback address that is allowed")
	}
	return nil
}
