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

// Reauthenticated tells when the session was last freshly signed in.
type Reauthenticated struct {
	SignedInAt time.Time `json:"signed_in_at"`
}

// reauth makes a session count as freshly signed in after its user has proved who
// they are once more. A user of an identity provider signs in there again instead,
// which opens a fresh session.
func (s *Service) reauth(ctx context.Context, in reauthIn) (out Reauthenticated, err error) {
	a := policy.From(ctx)
	spend := func(*db.Tx) error { return nil }
	switch {
	case (in.Password == "") == (in.Code == ""):
		return out, fault.Field("password", "is required, or else code")
	case in.Code != "":
		spend, err = s.checkCodeOfUser(ctx, a.UserID, in.Code)
	default:
		err = s.checkPassword(ctx, a.UserID, in.Password)
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

// checkPassword returns the fault wrong-password unless the password is the user's,
// and fault.RateLimited.
func (s *Service) checkPassword(ctx context.Context, user, password string) error {
	var hash string
	var of target
	var t try
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		var email string
		var err error
		hash, email, err = people.Password(tx, user)
		of = target{user, policy.From(ctx).AccountID, email}
		return err
	})
	if err == nil {
		t, err = s.countTry(ctx, guessSession, user, of)
	}
	if err != nil {
		return err
	}
	match, err := s.checks.match(ctx, false, hash, password)
	switch {
	case err != nil:
		return errors.Join(err, s.uncountTry(ctx, t))
	case !match:
		return fault.New(fault.Unauthenticated, "wrong-password", "This is not the password.")
	}
	return s.DB.Write(ctx, t.succeed)
}

// checkCodeOfUser is checkCode for the address of a user.
func (s *Service) checkCodeOfUser(ctx context.Context, user, code string) (spend func(*db.Tx) error, err error) {
	var email string
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		email, err = people.Email(tx, user)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.checkCode(ctx, strings.ToLower(email), code)
}
