// Package member is the roster of an account: its members, their roles, and the open
// invitations. An account always has an owner.
package member

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
)

// OrgMember is a user's place in an account.
type OrgMember struct {
	_         struct{}    `doc:"A person in an account, with their role." schema:"OrgMember"`
	UserID    string      `json:"user_id" format:"uuid" doc:"id of the user"`
	Login     string      `json:"login" example:"ada" doc:"login of the user"`
	Name      string      `json:"name" example:"Ada Lovelace" doc:"as they call themselves"`
	AvatarURL string      `json:"avatar_url" example:"https://example.com/ada.png" doc:"address of their picture; empty without one"`
	Role      policy.Role `json:"role" doc:"what they may do in the account"`
	JoinedAt  time.Time   `json:"joined_at" doc:"when they became a member"`
}

func wire(m people.Member) OrgMember {
	return OrgMember{UserID: m.UserID, Login: m.Login, Name: m.Name, AvatarURL: m.AvatarURL, Role: m.Role, JoinedAt: m.JoinedAt}
}

// Invited is the answer of member.invite. A user who allows it becomes a member at once;
// any other login, and an address, gets an invitation. The link of one to an address is
// shown only here.
type Invited struct {
	_          struct{}               `doc:"Whom member.invite brought in, and how." schema:"Invited"`
	Kind       string                 `json:"kind" enum:"added,invited" doc:"added: a member at once; invited: has to accept"`
	Member     *OrgMember             `json:"member" doc:"the new member; null when invited"`
	Invitation *invitation.Invitation `json:"invitation" example:"null" doc:"the invitation; null when added"`
	Link       *string                `json:"link" format:"uri" example:"null" doc:"address that accepts an invitation by address, shown this once; otherwise null"`
}

// Left is the answer of member.leave.
type Left struct {
	_         struct{} `doc:"What member.leave did." schema:"Left"`
	AccountID string   `json:"account_id" format:"uuid" doc:"the account that was left"`
	Left      bool     `json:"left" doc:"always true"`
}

// Removed is the answer of member.remove.
type Removed struct {
	_       struct{} `doc:"What member.remove did." schema:"Removed"`
	UserID  string   `json:"user_id" format:"uuid" doc:"who was removed"`
	Removed bool     `json:"removed" doc:"always true"`
}

// Tries limits how often an account adds people by login.
type Tries interface {
	// Take uses one of the account's tries. If none is left, ok is false, and after
	// is the time until the next one is free.
	Take(account string) (after time.Duration, ok bool)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Invites *invitation.Service
	Mail    *mail.Outbox
	// BaseURL is the address in mails.
	BaseURL string
	Tries   Tries
}

// Service implements the capabilities of the roster.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// mayGive returns the fault owner-required for a caller who gives or takes the role
// owner and is not an owner. Machines are never owners.
func mayGive(a policy.Actor, role policy.Role) error {
	if role == policy.Owner && a.Role != policy.Owner {
		return fault.New(fault.Forbidden, "owner-required", "Only an owner can make an owner, or change what one is.")
	}
	return nil
}

func lastOwner() error {
	return fault.Reason("last_owner", "An account needs an owner: make somebody else one first.").With("reason", "last_owner")
}
