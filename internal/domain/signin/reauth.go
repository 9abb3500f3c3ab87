package signin

import (
	"context"
	"errors"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

type reauthIn struct {
	Password string `json:"password,omitempty" maxLength:"200" doc:"the password of who is signed in"`
	Code     string `json:"code,omitempty" maxLength:"20" doc:"instead: one that POST /auth/email has mailed to the user's address"`
}

// Reauthenticated tells since when the session counts as freshly signed in.
type Reauthenticated struct {
	SignedInAt time.Time `json:"signed_in_at"`
}

// reauth lets a session pass for a fresh one, once its user has proved again
// who they are. Who signs in with a provider does that there: what comes of it
// is a fresh session.
func (s *Service) reauth(ctx context.Context, in reauthIn) (out Reauthenticated, err error) {
	a := policy.From(ctx)
	spend := func(*db.Tx) error { return nil }
	switch {
	case (in.Password == "") == (in.Code == ""):
		return out, fault.Field("password", "is required, or else code")
	case in.Code != "":
		spend, err = s.guess(ctx, a.UserID, in.Code)
	default:
		err = s.knows(ctx, a.UserID, in.Password)
	}
	if err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := spend(tx); err != nil {
			return err
		}
		out.SignedInAt = tx.Now
		if _, err := refresh.Exec(tx, a.UserID, a.CredentialID+"%", tx.Micros()); err != nil {
			return err
		}
		tx.AfterCommit(func() { s.ForgetUser(a.UserID) })
		return reauthenticatedEvent.Record(tx, event.Subject{ID: a.UserID}, event.None{})
	})
	return out, err
}

// knows fails unless the password is the user's.
func (s *Service) knows(ctx context.Context, user, password string) error {
	var hash string
	var of guessed
	var g guess
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		var email string
		var err error
		hash, email, err = people.Password(tx, user)
		of = guessed{user, policy.From(ctx).AccountID, email}
		return err
	})
	if err == nil {
		g, err = s.turn(ctx, bySessionOf, user, of)
	}
	if err != nil {
		return err
	}
	match, err := s.checks.match(ctx, hash, password)
	switch {
	case err != nil:
		return errors.Join(err, s.untried(ctx, g))
	case !match:
		return fault.New(fault.Unauthenticated, "wrong-password", "This is not the password.")
	}
	return s.DB.Write(ctx, g.right)
}

// guess fails unless the code is one that was mailed to the user.
func (s *Service) guess(ctx context.Context, user, code string) (spend func(*db.Tx) error, err error) {
	var email string
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		email, err = people.Email(tx, user)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.try(ctx, strings.ToLower(email), code)
}
