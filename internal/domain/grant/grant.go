// Package grant holds free capacity: AI developers that an operator gives to an
// account or to a person, with a reason and perhaps a time limit. A grant counts
// while it is active; afterwards its row stays as history.
//
// A grant to a person counts in one account: the one that the person has owned
// longest.
package grant

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
)

// EntitlementGrant is a grant as operators see it.
type EntitlementGrant struct {
	_         struct{}   `doc:"Free AI developers that an operator gave to an account or a person." schema:"EntitlementGrant"`
	ID        string     `json:"id" format:"uuid" doc:"id of the grant"`
	AccountID *string    `json:"account_id" format:"uuid" doc:"the account it was given to; null: it was given to a person"`
	UserID    *string    `json:"user_id" format:"uuid" doc:"the person it was given to; null: it was given to an account"`
	AIDevs    int64      `json:"ai_devs" db:"ai_devs" example:"1" doc:"AI developers on top of the paid seats"`
	Reason    string     `json:"reason" example:"Early tester" doc:"why it was given"`
	Active    bool       `json:"active" doc:"neither revoked nor expired"`
	IssuedBy  string     `json:"issued_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who gave it: user:<id>, operator:<id>, or system"`
	CreatedAt time.Time  `json:"created_at" doc:"when it was given"`
	ExpiresAt *time.Time `json:"expires_at" example:"null" doc:"when it ends by itself; null: never"`
	RevokedAt *time.Time `json:"revoked_at" example:"null" doc:"when it was revoked; null: it was not"`
}

// Gift is a grant that a person gets as soon as they have a user.
type Gift struct {
	AIDevs   int64
	Days     int // 0: for good
	Reason   string
	IssuedBy string
}

func (g Gift) grant(now time.Time) EntitlementGrant {
	out := EntitlementGrant{AIDevs: g.AIDevs, Reason: g.Reason, IssuedBy: g.IssuedBy}
	if g.Days > 0 {
		out.ExpiresAt = until(now, &g.Days)
	}
	return out
}

// Subject is the recipient of a grant: either an account or a user.
type Subject struct{ AccountID, UserID string }

func (s Subject) check() error {
	if (s.AccountID == "") == (s.UserID == "") {
		return fault.Field("account_id", "send either account_id or user_id")
	}
	return nil
}

// Gate is the gate of the closed beta.
type Gate interface {
	// LetIn lets a user through and mails them. fresh is false if they had been let
	// through before. It returns fault.NotFound if there is no such user.
	LetIn(tx *db.Tx, userID string) (fresh bool, err error)
}

// Invitations invites people who have no user yet.
type Invitations interface {
	// Invite mails a platform invitation that brings a gift along. If an invitation
	// to the address is open already, Invite returns its id, and fresh is false.
	Invite(tx *db.Tx, email string, g Gift) (invitationID string, fresh bool, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB          *db.DB
	Hub         *event.Hub
	Gate        Gate
	Invitations Invitations
}

// Service implements the capabilities of grants.
type Service struct {
	Needs
	ledger Ledger
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n, ledger: Ledger{Hub: n.Hub}}
}

// Ledger books grants, and wakes the claims that wait in an account whose capacity
// has changed. Invitations bring grants along and are made before Service; that is
// why Ledger does not need a Service.
type Ledger struct{ Hub *event.Hub }
