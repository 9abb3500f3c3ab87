// Package people owns users, accounts (the tenants for which users act) and
// memberships (the role of a user in an account). It has no capability. The domains
// account, member, invitation, access, signin and grant read and change its rows with
// these functions, in their own transactions, and record the events.
package people

import (
	"time"

	"yardmaster/internal/policy"
)

// Tier is what an account is entitled to.
type Tier string

// Tiers of an account. Every tier but TierFree covers private repositories.
const (
	TierFree       Tier = "free"
	TierTeam       Tier = "team" // seats are paid for
	TierSelfHosted Tier = "self_hosted"
	TierOSS        Tier = "oss_verified"
)

// Values lists all tiers.
func (Tier) Values() []string {
	return []string{string(TierFree), string(TierTeam), string(TierSelfHosted), string(TierOSS)}
}

// Kind is whose an account is.
type Kind string

// Kinds of account.
const (
	KindOrganization Kind = "organization"
	KindUser         Kind = "user" // one person's own
)

// Values lists both kinds.
func (Kind) Values() []string { return []string{string(KindOrganization), string(KindUser)} }

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
	Kind  Kind
	Tier  Tier
}

// Membership is an account of a user, with the user's role there.
type Membership struct {
	AccountID string
	Login     string // of the account
	Kind      Kind   // of the account
	Role      policy.Role
}

// Member is a user of an account.
type Member struct {
	UserID    string
	Login     string
	Name      string
	AvatarURL string `db:"avatar_url"`
	Role      policy.Role
	JoinedAt  time.Time
}

// Credentials are the data to check a sign-in with a password.
type Credentials struct {
	ID           string
	Email        string
	PasswordHash string // empty: the person has no password
	AccountID    string // the account that the person joined first; empty without one
}
