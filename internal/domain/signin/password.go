package signin

import (
	"context"
	"net/url"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

// Back lists the ways in which the signed-in person can sign in again.
type Back struct {
	_        struct{} `doc:"How the signed-in person can sign in again."`
	Password bool     `json:"password" doc:"they have a password"`
	Email    bool     `json:"email" doc:"codes are mailed to them: this server sends mail, and they have an address"`
	Provider bool     `json:"provider" doc:"GitHub or an identity provider vouches for them, and is asked here still"`
	Refused  *string  `json:"refused" enum:"sso-session,reauth-required" example:"null" doc:"why this session cannot set a password, as auth.password_set refuses it; null: it can"`
}

func (b Back) none() bool { return !b.Password && !b.Email && !b.Provider }

// The sessions that set no password, by the slug that refuses them.
const (
	boundSession = "sso-session"
	oldSession   = "reauth-required"
)

var noPassword = map[string]string{
	// The provider of one account must not give a way into the others.
	boundSession: "This session was opened by the identity provider of an account, and sets no password.",
	oldSession:   "A first password is set by a session that signed in within the last hour. Sign in again.",
}

func (s *Service) waysBack(ctx context.Context, _ op.None) (Back, error) {
	return s.back(ctx, policy.From(ctx).UserID)
}

func (s *Service) back(ctx context.Context, userID string) (out Back, err error) {
	a := policy.From(ctx)
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		hash, email, err := people.Password(tx, userID)
		if err != nil {
			return err
		}
		out = Back{Password: hash != "", Email: s.Mailed && email != ""}
		switch {
		case a.UserID != userID:
		case a.Bound:
			out.Refused = new(boundSession)
		case !out.Password && a.Present(tx.Now) != nil:
			out.Refused = new(oldSession)
		}
		issuers, err := issuersOf.All(tx, userID)
		for _, issuer := range issuers {
			if err == nil && !out.Provider {
				out.Provider, err = s.Providers.Vouches(tx, userID, issuer)
			}
		}
		return err
	})
	return out, err
}

// after is where a form leads that has signed a user in: to the form of the first
// password, if there is no other way to sign in again.
func (s *Service) after(ctx context.Context, userID, returnTo string) (string, error) {
	b, err := s.back(ctx, userID)
	if err != nil || !b.none() {
		return Local(returnTo), err
	}
	return "/password?return_to=" + url.QueryEscape(Local(returnTo)), nil
}

type setPasswordIn struct {
	Now      string `json:"password_now,omitempty" maxLength:"200" doc:"the password until now; left out by who has none"`
	Password string `json:"password" minLength:"10" maxLength:"200" doc:"the new one, of at least 10 characters"`
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"sent by our pages: answers are pages, and success leads there"`
}

// setPassword sets the password of who is signed in, and ends their other sessions.
func (s *Service) setPassword(ctx context.Context, in setPasswordIn) (op.Reply, error) {
	switch err := s.changePassword(ctx, in); {
	case err != nil && in.ReturnTo != "":
		return s.passwordAgain(ctx, in.ReturnTo, err)
	case err != nil:
		return op.Reply{}, err
	case in.ReturnTo != "":
		return web.GoTo(Local(in.ReturnTo)), nil
	}
	b, err := s.back(ctx, policy.From(ctx).UserID)
	return op.Reply{Body: b}, err
}

func (s *Service) changePassword(ctx context.Context, in setPasswordIn) error {
	a := policy.From(ctx)
	b, err := s.back(ctx, a.UserID)
	switch {
	case err != nil:
		return err
	case b.Refused != nil:
		return fault.New(fault.Forbidden, *b.Refused, noPassword[*b.Refused])
	case b.Password && in.Now == "":
		return fault.Field("password_now", "is required: you have a password")
	case b.Password:
		if err := s.checkPassword(ctx, a.UserID, in.Now); err != nil {
			return err
		}
	}
	hash, err := s.checks.hash(ctx, in.Password)
	if err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if ok, err := people.SetPassword(tx, a.UserID, hash, b.Password); err != nil {
			return err
		} else if !ok {
			return fault.Field("password_now", "is required: a password was set meanwhile")
		}
		if err := s.shut(tx, a.UserID, a.CredentialID+"%"); err != nil {
			return err
		}
		return passwordSetEvent.Record(tx, event.Subject{ID: a.UserID}, passwordSetData{First: !b.Password})
	})
}

type passwordFormIn struct {
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"path of this server to go to then"`
}

// firstPassword holds the values of the form of a password. If Refused is not empty, it says
// why there is none for this session, and Again is where the page leads after a sign-out.
type firstPassword struct {
	ReturnTo, Login, Failure string
	Refused, Again           string
	Has                      bool
}

// passwordForm shows the form of a password. Visitors are sent to sign in.
func (s *Service) passwordForm(ctx context.Context, in passwordFormIn) (op.Reply, error) {
	if policy.From(ctx).Credential != policy.Session {
		return web.GoTo(passwordLater(in.ReturnTo)), nil
	}
	return s.passwordAgain(ctx, in.ReturnTo, nil)
}

// passwordLater is the sign-in page that leads on to the form of a password.
func passwordLater(returnTo string) string {
	return "/login?return_to=" + url.QueryEscape("/password?return_to="+url.QueryEscape(Local(returnTo)))
}

// typedPassword shows the form again, if what was sent could not be decoded.
func (s *Service) typedPassword(ctx context.Context, in any, failure error) (op.Reply, error) {
	if in := in.(*setPasswordIn); in.ReturnTo != "" {
		return s.passwordAgain(ctx, in.ReturnTo, failure)
	}
	return op.Reply{}, failure
}

func (s *Service) passwordAgain(ctx context.Context, returnTo string, failure error) (op.Reply, error) {
	status, line, err := web.Complaint(failure)
	if err != nil {
		return op.Reply{}, err
	}
	b, err := s.back(ctx, policy.From(ctx).UserID)
	if err != nil {
		return op.Reply{}, err
	}
	form := firstPassword{ReturnTo: Local(returnTo), Has: b.Password, Failure: line}
	if b.Refused != nil {
		form.Refused, form.Failure = noPassword[*b.Refused], ""
		if *b.Refused == oldSession {
			form.Again = passwordLater(returnTo)
		}
	}
	if form.Login, _, err = s.Who(ctx); err != nil {
		return op.Reply{}, err
	}
	return render(ctx, status, passwordPage, form)
}
