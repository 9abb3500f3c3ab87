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
	"yardmaster/internal/fault"
)

// EntitlementGrant is a grant as operators see it.
type EntitlementGrant struct {
	ID        string     `json:"id"`
	AccountID *string    `json:"account_id" doc:"the account it was given to; null: it was given to a person"`
	UserID    *string    `json:"user_id" doc:"the person it was given to; null: it was given to an account"`
	AIDevs    int64      `json:"ai_devs" db:"ai_devs" doc:"AI developers on top of the paid seats"`
	Reason    string     `json:"reason"`
	Active    bool       `json:"active" doc:"neither revoked nor expired"`
	IssuedBy  string     `json:"issued_by"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
}

// Subject is whom a grant is for: an account or a person, not both.
type Subject struct{ AccountID, UserID string }

func (s Subject) check() error {
	if (s.AccountID == "") == (s.UserID == "") {
		return fault.Field("account_id", "send either account_id or user_id")
	}
	return nil
}

// Service answers for grants.
type Service struct {
	DB *db.DB
	// Account and User tell whether a subject exists.
	Account func(tx *db.Tx, id string) (bool, error)
	User    func(tx *db.Tx, id string) (bool, error)
	// Approve lets a user through the gate; false if they were through.
	Approve func(tx *db.Tx, userID string) (bool, error)
	// Invite mails an invitation to the platform that brings AI developers
	// along, for some days or, with 0, for good.
	Invite func(tx *db.Tx, email string, devs, days int) (invitationID string, err error)
}
