// Package account is who there is: people (users), the organisations they act
// for (accounts), and which person has which role where (memberships). It also
// holds first boot, which makes the first of each.
package account

import (
	"regexp"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Tiers of an account. Private repositories are covered by every one but Free.
const (
	TierFree       = "free"
	TierSelfHosted = "self_hosted"
	TierOSS        = "oss_verified"
)

// User is a person, as the person and an operator see it.
type User struct {
	ID            string `json:"id"`
	Login         string `json:"login"`
	Name          string `json:"name"`
	Email         string `json:"email"`
	AvatarURL     string `json:"avatar_url"`
	PlatformAdmin bool   `json:"platform_admin"`
}

// Account is a tenant, as a member sees it. Role is the member's own; empty
// for a credential that names nobody.
type Account struct {
	ID    string      `json:"id"`
	Login string      `json:"login"`
	Kind  string      `json:"kind"`
	Role  policy.Role `json:"role"`
	Tier  string      `json:"tier"`
}

// Membership is one account a user belongs to.
type Membership struct {
	AccountID string      `json:"account_id"`
	Login     string      `json:"login"`
	Role      policy.Role `json:"role"`
}

// Terms is the state of the terms of service for a user.
type Terms struct {
	Version    string     `json:"version"`
	Accepted   bool       `json:"accepted"`
	AcceptedAt *time.Time `json:"accepted_at"`
}

// CredentialInfo describes the calling credential.
type CredentialInfo struct {
	Kind       policy.Credential `json:"kind"`
	ID         string            `json:"id"`
	ExpiresISO *time.Time        `json:"expires_iso"`
}

// Identity is the answer of account.me. User is null and approved is null when
// the credential names no human.
type Identity struct {
	Scopes      []string       `json:"scopes"`
	Approved    *bool          `json:"approved"`
	User        *User          `json:"user"`
	Account     Account        `json:"account"`
	Memberships []Membership   `json:"memberships"`
	TOS         Terms          `json:"tos"`
	Credential  CredentialInfo `json:"credential"`
}

// TermsVersion is the version a consent is recorded for.
const TermsVersion = "2026-11-01"

// Service answers for users, accounts and memberships.
type Service struct {
	DB *db.DB
	// Seats is what a new account of a self-hosted server gets.
	Seats int
	// SignIn opens a browser session for a user and answers the cookie.
	SignIn func(tx *db.Tx, userID, accountID string, secure bool) (cookie string, err error)
	// Repointed tells every cache of credentials that a session acts for
	// another account now.
	Repointed func(hash string)
	// Mail sends a letter once the transaction has committed.
	Mail func(tx *db.Tx, to, subject, text string) error
	// Capped, optional, lets an account's work go on that its spend cap, in
	// micro-dollars and nil for none, holds up no more.
	Capped func(tx *db.Tx, accountID string, micros *int64) error
	// SetupToken guards first boot; empty when it was not asked for.
	SetupToken string
	Hub        *event.Hub
}

var loginPattern = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?$`)

// CheckLogin refuses names that could not be part of a path or a mention.
func CheckLogin(field, login string) error {
	if !loginPattern.MatchString(login) {
		return fault.Field(field, "must be 1 to 39 lower-case letters, digits or hyphens, and not begin or end with a hyphen")
	}
	return nil
}
