// Package modelkey is the account's pool of keys of model providers. A key is
// sealed when it comes in and never shown again; the model gateway, and nobody
// else, opens it for a call.
package modelkey

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// Kinds of keys: paid by use, or by a subscription.
const (
	Metered      = "metered"
	Subscription = "subscription"
)

// Statuses of a key.
const (
	Unverified = "unverified"
	OK         = "ok"
	Failing    = "failing" // the provider refused it lately
)

// BillingKey is a key as clients see it; the key itself is never shown.
type BillingKey struct {
	_              struct{}    `doc:"A model provider key, masked." schema:"BillingKey"`
	ID             string      `json:"id" format:"uuid" doc:"id of the key"`
	Provider       string      `json:"provider" enum:"anthropic,openai,google,openrouter,compatible,scripted" doc:"whose API it is for; scripted is the offline one of this server"`
	Label          string      `json:"label" example:"Team key" doc:"name to tell it by"`
	Masked         string      `json:"masked" example:"…4f2a" doc:"its last characters, to tell it by"`
	BaseURL        *string     `json:"base_url" format:"uri" example:"null" doc:"address of the provider compatible; null for the others"`
	Kind           string      `json:"kind" enum:"metered,subscription" doc:"metered: each call costs; subscription: calls are paid for otherwise"`
	Capacity       *int64      `json:"capacity" example:"8" doc:"calls at once that the key is meant for, a note for people: nothing holds calls to it; null: no limit is known"`
	Priority       int64       `json:"priority" example:"100" doc:"the lowest is used first"`
	Status         string      `json:"status" enum:"unverified,ok,failing" example:"ok" doc:"unverified, ok or failing; one that is failing is used where no other fits, and is ok once it works"`
	Price          *ModelPrice `json:"price" doc:"of whatever is called over it; null: what the price tables say"`
	LastVerifiedAt *time.Time  `json:"last_verified_at" doc:"when it last began to work; null: never"`
	LastError      *string     `json:"last_error" example:"null" doc:"what the provider said when it refused it; null unless it is failing"`
	CreatedAt      time.Time   `json:"created_at" doc:"when it was added"`
}

// Templates are told of new keys.
type Templates interface {
	// Adopt names a model in the templates that use a new key of tx.Account and
	// name none, and answers which these are.
	Adopt(tx *db.Tx, keyID, baseURL, model string) ([]string, error)
}

// Needs are what keys are made of.
type Needs struct {
	DB   *db.DB
	Ring *seal.Keyring
	Hub  *event.Hub
	// PlainHTTP is where base addresses may be reached without TLS: see
	// PlainNowhere. Tests and networks of their own have reason to.
	PlainHTTP Plain
	// Models lists the models of an endpoint, sorted. Errors are faults.
	Models    func(context.Context, llm.Route) ([]string, error)
	Templates Templates
}

// Service answers for keys.
type Service struct{ Needs }

// New makes the service. It panics if something is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Key is a key of the pool, still sealed.
type Key struct {
	ID       string
	Provider llm.Provider
	BaseURL  string

	account, sealed string
	price           *llm.Price
}

// Wish says which key a call needs.
type Wish struct {
	Provider llm.Provider // empty: any
	BaseURL  string       // of the provider compatible
	API      llm.API
}

// Fits tells whether the key can be used. A key of the provider compatible is
// sent to its own address and to no other: who may choose the address in a
// template may not choose where keys go.
func (k Key) Fits(w Wish) bool {
	if w.Provider != "" && k.Provider != w.Provider || w.BaseURL != "" && k.BaseURL != w.BaseURL {
		return false
	}
	return k.Provider.Speaks(w.API)
}

// Pick is the first key of an account's pool that fits.
func Pick(tx *db.Tx, account string, w Wish) (Key, bool, error) {
	keys, err := Pool(tx, account)
	if i := slices.IndexFunc(keys, func(k Key) bool { return k.Fits(w) }); i >= 0 {
		return keys[i], true, err
	}
	return Key{}, false, err
}

// Open unseals a key into the route of a call.
func (s *Service) Open(k Key) (llm.Route, error) {
	plain, err := s.Ring.Unseal(purpose(k.account), k.sealed)
	if err != nil {
		return llm.Route{}, err
	}
	return llm.Route{Provider: k.Provider, BaseURL: k.BaseURL, Key: string(plain)}, nil
}

func purpose(account string) string { return "provider-key/" + account }

// mask keeps the last four characters of a key that is long enough to spare
// them.
func mask(key string) string {
	switch {
	case key == "":
		return ""
	case len(key) < 12:
		return "…"
	}
	return "…" + key[len(key)-4:]
}

// keyless providers may be used without a key: the scripted model, and a model
// server of the account's own.
func keyless(p llm.Provider) bool { return p == llm.Scripted || p == llm.Compatible }

// Plain says where keys may be sent over plain http.
type Plain uint8

// From the strictest on. Loopback is this machine.
const (
	PlainNowhere Plain = iota
	PlainLoopback
	PlainAnywhere
)

// checkBaseURL refuses addresses that a key must not be sent to.
func checkBaseURL(address string, plain Plain) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return fault.Field("base_url", "must be an https address without user, query and fragment")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && Closed(ip) {
		return fault.Field("base_url", "must not be a link-local address")
	}
	switch {
	case u.Scheme == "https", plain == PlainAnywhere, plain == PlainLoopback && loopback(u.Hostname()):
		return nil
	case plain == PlainLoopback:
		return fault.Field("base_url", "must be https, or http on a loopback address")
	}
	return fault.Field("base_url", "must be https")
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// metadata are services that hand a machine its credentials and are not on a
// link-local address: of AWS, Google, Azure, Alibaba and Oracle.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"),
}

// Closed tells of an address at which no model is, but what a cloud tells its
// machine alone.
func Closed(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || slices.Contains(metadata, ip)
}
