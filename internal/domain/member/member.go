// Package member is the roster of an account: who belongs to it, in which
// role, and who was invited to. An account always has an owner.
package member

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

// OrgMember is a person's place in the account.
type OrgMember struct {
	UserID    string      `json:"user_id"`
	Login     string      `json:"login"`
	Name      string      `json:"name"`
	AvatarURL string      `json:"avatar_url" db:"avatar_url"`
	Role      policy.Role `json:"role" enum:"viewer,member,admin,owner"`
	JoinedAt  time.Time   `json:"joined_at"`
}

// Invited is the answer of member.invite: a registered user is a member at
// once, an address has an invitation whose link is shown here and never again.
type Invited struct {
	Kind       string                 `json:"kind" enum:"added,invited"`
	Member     *OrgMember             `json:"member"`
	Invitation *invitation.Invitation `json:"invitation"`
	Link       *string                `json:"link"`
}

// Left is the answer of member.leave.
type Left struct {
	AccountID string `json:"account_id"`
	Left      bool   `json:"left"`
}

// Removed is the answer of member.remove.
type Removed struct {
	UserID  string `json:"user_id"`
	Removed bool   `json:"removed"`
}

// Service keeps the roster.
type Service struct {
	DB      *db.DB
	Invites *invitation.Service
	// Forget drops what is cached of a user's credentials.
	Forget func(userID string)
	Mail   *mail.Outbox
	// BaseURL is the address in mails.
	BaseURL func() string
	// Slot takes one of an account's tries to add somebody by login, or tells
	// when the next is free.
	Slot func(account string) (after time.Duration, ok bool)
}

// mayGive refuses a caller who hands out, or takes away, a role above their
// own. Machines are never owners.
func mayGive(a policy.Actor, role policy.Role) error {
	if role == policy.Owner && a.Role != policy.Owner {
		return fault.New(fault.Forbidden, "owner-required", "Only an owner can make an owner, or change what one is.")
	}
	return nil
}

func lastOwner() error {
	return fault.Reason("last_owner", "An account needs an owner: make somebody else one first.").With("reason", "last_owner")
}
