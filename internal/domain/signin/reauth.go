package signin

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

type reauthIn struct {
	Password string `json:"password" minLength:"1" maxLength:"200"`
}

// Reauthenticated tells since when the session counts as freshly signed in.
type Reauthenticated struct {
	SignedInAt time.Time `json:"signed_in_at"`
}

// reauth lets a session pass for a fresh one, once its user has proved again
// who they are.
func (s *Service) reauth(ctx context.Context, in reauthIn) (out Reauthenticated, err error) {
	a := policy.From(ctx)
	var hash string
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		hash, err = passwordOf.One(tx, a.UserID)
		return err
	})
	if err != nil {
		return out, err
	}
	match, err := s.checks.match(ctx, hash, in.Password)
	if err != nil {
		return out, err
	}
	if !match {
		return out, fault.New(fault.Unauthenticated, "wrong-password", "This is not the password.")
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		out.SignedInAt = tx.Now
		if _, err := refresh.Exec(tx, a.UserID, a.CredentialID+"%", tx.Micros()); err != nil {
			return err
		}
		tx.AfterCommit(func() { s.ForgetUser(a.UserID) })
		return event.Record(tx, event.Change{Kind: "user.reauthenticated", Object: a.UserID})
	})
	return out, err
}
