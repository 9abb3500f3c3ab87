// Package billing is the account's pool of model keys: sealed when they come
// in, opened only to make a call, shown by their last characters. The gateway
// takes the first key that fits, by priority.
package billing

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/seal"
)

// Kinds of keys by how they are billed.
const (
	Metered      = "metered"
	Subscription = "subscription"
)

// Key is a pooled model key as the API shows it.
type Key struct {
	ID             string       `json:"id"`
	Provider       llm.Provider `json:"provider"`
	Label          string       `json:"label"`
	BaseURL        *string      `json:"base_url"`
	Masked         string       `json:"masked"`
	Kind           string       `json:"kind" enum:"metered,subscription"`
	Capacity       *int64       `json:"capacity" doc:"model streams at once; null: the kind's default"`
	Priority       int64        `json:"priority" doc:"lower is tried first"`
	Status         string       `json:"status" enum:"unverified,ok,failed"`
	LastVerifiedAt *time.Time   `json:"last_verified_at"`
	LastError      *string      `json:"last_error"`
	CreatedAt      time.Time    `json:"created_at"`
}

// Service keeps the pool.
type Service struct {
	DB   *db.DB
	Ring *seal.Keyring
}

func purpose(account string) string { return "provider-key/" + account }

// Route opens a key for one call. The result holds the secret: it must not be
// logged or sent anywhere but to the provider.
func (s *Service) Route(k Sealed) (llm.Route, error) {
	secret, err := s.Ring.Unseal(purpose(k.AccountID), k.Sealed)
	if err != nil {
		return llm.Route{}, fmt.Errorf("key %s: %w", k.ID, err)
	}
	return llm.Route{Provider: k.Provider, BaseURL: k.BaseURL, Key: string(secret)}, nil
}

// mask keeps enough of a key to tell it from the others.
func mask(key string) string {
	if len(key) < 12 {
		return "…"
	}
	return "…" + key[len(key)-4:]
}

// checkBase refuses addresses that would send the key in the clear: plain http
// is for this machine only.
func checkBase(provider llm.Provider, base string) error {
	if base == "" {
		if provider == llm.Compatible {
			return fault.Field("base_url", "is required for a compatible provider")
		}
		return nil
	}
	if provider == llm.Scripted {
		return fault.Field("base_url", "has no meaning for the scripted provider")
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fault.Field("base_url", "must be an address without user, query or fragment")
	}
	if u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()) {
		return nil
	}
	return fault.Field("base_url", "must be https; plain http is for this machine only")
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || strings.EqualFold(host, "localhost")
}
