// Package people owns who there is: persons (users), the tenants that they act
// for (accounts), and which person has which role where (memberships). It has
// no capability of its own: those of account, member, invitation, access,
// signin and grant read and change its rows by the functions here, in their
// own transactions, and record what they did.
package people

import (
	"time"

	"yardmaster/internal/policy"
)

// Tiers of an account. Private repositories are covered by every one but
// TierFree.
const (
	TierFree       = "free"
	TierSelfHosted = "self_hosted"
	TierOSS        = "oss_verified"
)

// Kinds of account.
const (
	KindOrganization = "organization"
	KindUser         = "user" // one person's own
)

// User is a person.
type User struct {
	ID            string
	Login         string
	Name          string
	Email         string // in lower case; empty without one
	AvatarURL     string `db:"avatar_url"`
	PlatformAdmin bool
	ApprovedAt    *time.Time // nil: the person is on the waitlist
	TOSVersion    string     `db:"tos_version"`
	TOSAcceptedAt *time.Time `db:"tos_accepted_at"`
	CreatedAt     time.Time
}

// Account is a tenant.
type Account struct {
	ID    string
	Login string // also the owner of its repositories
	Kind  string
	Tier  string
}

// Membership is one account of a person, with the person's role there.
type Membership struct {
	AccountID string
	Login     string // of the account
	Kind      string // of the account
	Role      policy.Role
}

// Member is one person of an account.
type Member struct {
	UserID    string
	Login     string
	Name      string
	AvatarURL string `db:"avatar_url"`
	Role      policy.Role
	JoinedAt  time.Time
}

// Credentials are what a person who signs in with a password is checked
// against.
type Credentials struct {
	ID           string
	Email        string
	PasswordHash string // empty: the person has no password
	AccountID    string // the first account that the person joined; empty without one
}
