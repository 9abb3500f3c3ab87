// Package grant is free capacity: AI developers that an operator gives an
// account, or a person, for a reason and perhaps for a while. A grant counts
// while it is active; afterwards its row stays, as the history of its subject.
//
// What a person was given counts in one account: the one the person has owned
// for longest.
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

// Gift is what a person is to be given once they are here.
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

// Subject is whom a grant is for: an account or a person, not both.
type Subject struct{ AccountID, UserID string }

func (s Subject) check() error {
	if (s.AccountID == "") == (s.UserID == "") {
		return fault.Field("account_id", "send either account_id or user_id")
	}
	return nil
}

// Gate is the gate of the closed beta.
type Gate interface {
	// LetIn lets a user through and tells them by mail; fresh is false if they
	// were through. It fails with fault.NotFound if there is no such user.
	LetIn(tx *db.Tx, userID string) (fresh bool, err error)
}

// Invitations asks people in who are not here yet.
type Invitations interface {
	// Invite mails an invitation to the platform that brings a gift along, unless
	// one waits for the address: then it answers that one, and fresh is false.
	Invite(tx *db.Tx, email string, g Gift) (invitationID string, fresh bool, err error)
}

// Needs is what grants stand on.
type Needs struct {
	DB          *db.DB
	Hub         *event.Hub
	Gate        Gate
	Invitations Invitations
}

// Service answers for grants.
type Service struct {
	Needs
	ledger Ledger
}

// New makes the service of n, which is to be whole.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n, ledger: Ledger{Hub: n.Hub}}
}

// Ledger books grants, and wakes those who wait for work in an account whose
// capacity has changed. It needs no Service, so that invitations, which bring
// grants along, can be made before one.
type Ledger struct{ Hub *event.Hub }
