// Package account shows people themselves and their accounts; package people owns the
// rows. It also holds first boot, which makes the first person and account.
package account

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/closure"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
)

// User is a person as that person and operators see them.
type User struct {
	_             struct{} `doc:"A person." schema:"User"`
	ID            string   `json:"id" format:"uuid" doc:"id of the user"`
	Login         string   `json:"login" example:"ada" doc:"name they sign in with"`
	Name          string   `json:"name" example:"Ada Lovelace" doc:"as they call themselves"`
	Email         string   `json:"email" doc:"their address; empty without one"`
	AvatarURL     string   `json:"avatar_url" example:"https://example.com/ada.png" doc:"address of their picture; empty without one"`
	PlatformAdmin bool     `json:"platform_admin" example:"false" doc:"whether they may run the whole server"`
}

// Account is a tenant as a member sees it. Role is the member's role there; it is
// empty for a credential that names no user.
type Account struct {
	_     struct{}    `doc:"The account that a credential acts on."`
	ID    string      `json:"id" format:"uuid" doc:"id of the account"`
	Login string      `json:"login" example:"acme" doc:"its name, and the owner of its repositories"`
	Kind  people.Kind `json:"kind" doc:"user: one person's own"`
	Role  policy.Role `json:"role" or:"" doc:"the caller's role in it; empty for a machine token"`
	Tier  people.Tier `json:"tier" doc:"what it is entitled to: free does not cover private repositories"`

	Deletion *closure.Deletion `json:"deletion" doc:"in account.me: that it is going to be deleted; null: it is not"`
}

// Membership is an account that a user belongs to.
type Membership struct {
	_         struct{}    `doc:"An account that a person belongs to." schema:"Membership"`
	AccountID string      `json:"account_id" format:"uuid" doc:"id of the account"`
	Login     string      `json:"login" example:"acme" doc:"login of the account"`
	Role      policy.Role `json:"role" example:"owner" doc:"the person's role in it"`
}

// Terms tells whether a user has accepted the present terms of service.
type Terms struct {
	_          struct{}   `doc:"Where a person stands with the terms of service." schema:"Terms"`
	Version    string     `json:"version" example:"2026-11-01" doc:"the present version of the terms"`
	Accepted   bool       `json:"accepted" doc:"whether the present version was accepted"`
	AcceptedAt *time.Time `json:"accepted_at" doc:"when; null: it was not"`
}

// CredentialInfo describes the calling credential.
type CredentialInfo struct {
	_          struct{}          `doc:"What vouches for the caller." schema:"CredentialInfo"`
	Kind       policy.Credential `json:"kind" enum:"session,pat,operator,box" doc:"pat is a personal access token, operator one of an operator"`
	ID         string            `json:"id" example:"0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the credential; of a session a part of its hash"`
	ExpiresISO *time.Time        `json:"expires_iso" example:"null" doc:"when it ends; null: never"`
}

// Identity is the answer of account.me. User and Approved are nil if the credential
// names no user.
type Identity struct {
	_           struct{}       `doc:"Who is calling, and what they may do." schema:"Identity"`
	Scopes      []string       `json:"scopes" example:"[\"read:tasks\",\"write:tasks\"]" doc:"what the credential may do"`
	Approved    *bool          `json:"approved" doc:"false: the person is on the waitlist; null: a machine token"`
	User        *User          `json:"user" doc:"the person; null for a machine token"`
	Account     Account        `json:"account" doc:"the account that it acts on"`
	Memberships []Membership   `json:"memberships" doc:"the accounts that the person belongs to; empty for a machine token"`
	TOS         Terms          `json:"tos" doc:"the terms of service"`
	Credential  CredentialInfo `json:"credential" doc:"what vouches for the caller"`
}

// TermsVersion is the version of the terms of service that users accept now.
const TermsVersion = "2026-11-01"

// Sessions manages browser sessions.
type Sessions interface {
	// Open opens a session for a user and returns its Set-Cookie value.
	Open(tx *db.Tx, userID, accountID string, secure bool) (cookie string, err error)
	// Repoint lets the session of a user, given by the id of its credential, act for
	// another account from then on. It returns db.ErrNoRows if there is no such
	// session.
	Repoint(tx *db.Tx, userID, credentialID, accountID string) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB *db.DB
	// Seats is the number of seats of a new account on a self-hosted server.
	Seats int
	// SetupToken is the secret in the address of first boot. If it is empty, first
	// boot is closed.
	SetupToken string
	Sessions   Sessions
}

// Service implements the capabilities of users, their accounts and first boot.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

var loginPattern = lazy.New(`^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?$`)

// CheckLogin returns a fault.Invalid about the field unless the login can be part of
// a path and of a mention.
func CheckLogin(field, login string) error {
	if !loginPattern.MatchString(login) {
		return fault.Field(field, "must be 1 to 39 lower-case letters, digits or hyphens, and not begin or end with a hyphen")
	}
	return nil
}
