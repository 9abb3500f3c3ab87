package signin

import (
	"context"
	"errors"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

const group = "Sign-in"

// Ops returns the routes of sign-in. They are outside of /v1, because browsers and
// the command line use them to get a credential.
func (s *Service) Ops() []op.Op {
	return append(s.resets(), []op.Op{
		op.New(op.Row{
			ID:      "auth.methods",
			Method:  "GET",
			Path:    "/auth/methods",
			Group:   group,
			Rule:    policy.Public(),
			Summary: "The ways to sign in here",
			Doc:     "password always; the others as the operator has configured them.",
		}, s.methods),
		op.New(op.Row{
			ID:      "auth.page",
			Method:  "GET",
			Path:    "/login",
			Group:   group,
			Rule:    policy.Public(),
			NoStore: true,
			Also:    []int{303},
			Summary: "The sign-in page",
			Doc:     "A browser that is signed in already is sent on to return_to.",
		}, s.form),
		op.New(op.Row{
			ID:         "auth.password",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/password",
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			PerAddress: 30,
			Also:       []int{303},
			Refuses: []op.Refusal{
				{Status: 401, Slug: "wrong-password"},
				{Status: 403, Slug: "cross-origin"},
				{Status: 429, Slug: "rate-limited"},
			},
			Again:   s.typed,
			Summary: "Sign in with login or e-mail and password",
			Doc: "Opens a session in a cookie. Login and password that do not match are one 401, whichever of them is " +
				"wrong; too many tries for one login have to wait.",
		}, s.password),
		op.New(op.Row{
			ID:         "auth.email",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/email",
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			PerAddress: 30,
			Status:     202,
			Refuses:    []op.Refusal{{Status: 403, Slug: "cross-origin"}, {Status: 429, Slug: "rate-limited"}},
			Again:      s.typed,
			Summary:    "Mail a code to sign in with; the answer is the same whether or not the address is anybody's",
			Doc:        "The code is good for ten minutes. Asking too often for one address has to wait.",
		}, s.mailCode),
		op.New(op.Row{
			ID:         "auth.email_verify",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/email/verify",
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			PerAddress: 30,
			Also:       []int{303},
			Refuses: []op.Refusal{
				{Status: 401, Slug: "wrong-code"},
				{Status: 403, Slug: "cross-origin"},
				{Status: 403, Slug: "not-invited"},
				{Status: 429, Slug: "rate-limited"},
			},
			Again:   s.typedCode,
			Summary: "Sign in with the code that was mailed: six digits, good for ten minutes, five tries, once",
			Doc: "Opens a session in a cookie. A code is good once and for five tries. Where accounts are by invitation " +
				"only, an unknown address without one is refused.",
		}, s.verifyCode),
		op.New(op.Row{
			ID:         "auth.link",
			Method:     "GET",
			Path:       "/auth/link/{token}",
			Group:      group,
			Rule:       policy.Public(),
			NoStore:    true,
			PerAddress: 30,
			Also:       []int{303},
			Refuses:    []op.Refusal{{Status: 410, Slug: "gone"}},
			Summary:    "The page of an address that the server itself printed: whom it signs in, and the button that does",
			Doc: "Only `yardmaster demo` prints one. It is good for an hour. Opening it signs nobody in and does not use it " +
				"up; who is signed in as that person already is sent on.",
		}, s.showLink),
		op.New(op.Row{
			ID:         "auth.link_use",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/link/{token}",
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			PerAddress: 30,
			Also:       []int{303},
			Refuses:    []op.Refusal{{Status: 403, Slug: "cross-origin"}, {Status: 410, Slug: "gone"}},
			Summary:    "The button of that page: sign in, once",
			Doc:        "Opens a session in a cookie, and leads on to what the address was printed for.",
		}, s.byLink),
		op.New(op.Row{
			ID:         "auth.reauth",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/reauth",
			Group:      group,
			Rule:       policy.PerRequest().OfSession(),
			PerAddress: 30,
			Refuses: []op.Refusal{
				{Status: 403, Slug: "cross-origin"},
				{Status: 401, Slug: "wrong-password"},
				{Status: 401, Slug: "wrong-code"},
				{Status: 429, Slug: "rate-limited"},
			},
			Summary: "Prove again who is signed in, by password or mailed code, for what asks for a fresh sign-in",
			Doc:     "Dates the sign-in of the same session anew, which operator tokens ask for.",
		}, s.reauth),
		op.New(op.Row{
			ID:      "auth.ways",
			Method:  "GET",
			Path:    "/auth/ways",
			Group:   group,
			Rule:    policy.Require(policy.ReadAccount).OfSession(),
			Refuses: []op.Refusal{{Status: 403, Slug: "session-required"}},
			Summary: "How the signed-in person can sign in again",
			Doc:     "Who has no way back is asked for a password when they come in with a code.",
		}, s.waysBack),
		op.New(op.Row{
			ID:      "auth.password_form",
			Method:  "GET",
			Path:    "/password",
			Group:   group,
			Rule:    policy.Public(),
			NoStore: true,
			Also:    []int{303},
			Summary: "The form of a password",
			Doc:     "A visitor is sent to sign in first.",
		}, s.passwordForm),
		op.New(op.Row{
			ID:         "auth.password_set",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/password/set",
			Group:      group,
			Rule:       policy.Require(policy.ReadAccount).OfSession(),
			Form:       true,
			NoStore:    true,
			PerAddress: 30,
			Also:       []int{303},
			Body:       Back{},
			Refuses: []op.Refusal{
				{Status: 401, Slug: "wrong-password"},
				{Status: 403, Slug: "cross-origin"},
				{Status: 403, Slug: "session-required"},
				{Status: 403, Slug: "sso-session"},
				{Status: 403, Slug: "reauth-required"},
				{Status: 429, Slug: "rate-limited"},
			},
			Again:   s.typedPassword,
			Summary: "Set the password of who is signed in",
			Doc: "Who has a password sends it along; who has none must have signed in within the last hour. Their other " +
				"sessions end; tokens stay.",
		}, s.setPassword),
		op.New(op.Row{
			ID:      "auth.logout",
			From:    op.OwnPages,
			Method:  "POST",
			Path:    "/auth/logout",
			Group:   group,
			Rule:    policy.PerRequest().OfSession(),
			Form:    true,
			Also:    []int{303},
			Refuses: []op.Refusal{{Status: 403, Slug: "cross-origin"}},
			Summary: "End this browser session",
			Doc:     "The cookie is cleared, and the session is good for nothing any more; other sessions of the person stay.",
		}, s.logout),
	}...)
}

// Methods lists the ways to sign in.
type Methods struct {
	_       struct{} `doc:"The ways to sign in here."`
	Methods []string `json:"methods" enum:"password,email,oidc,github" doc:"password, email, oidc, github: those that are configured"`
}

func (s *Service) methods(ctx context.Context, _ op.None) (Methods, error) {
	w, err := s.ways(ctx)
	out := Methods{Methods: []string{"password"}}
	if w.Email {
		out.Methods = append(out.Methods, "email")
	}
	if w.SSO {
		out.Methods = append(out.Methods, "oidc")
	}
	if w.GitHub {
		out.Methods = append(out.Methods, "github")
	}
	return out, err
}

// ways are the ways to sign in besides the password, which always exists.
type ways struct{ Email, SSO, GitHub bool }

func (s *Service) ways(ctx context.Context) (w ways, err error) {
	w.Email, w.GitHub = s.Mailed, s.GitHub
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		w.SSO, err = s.Providers.Any(tx)
		return err
	})
	return w, err
}

type passwordIn struct {
	Login    string `json:"login" minLength:"1" maxLength:"254" doc:"login or e-mail"`
	Password string `json:"password" minLength:"1" maxLength:"200" doc:"the password of that login"`
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"sent by the sign-in page: answers are pages, and success leads there"`
}

// SignedIn tells which user signed in. The cookie holds the session itself.
type SignedIn struct {
	_         struct{} `doc:"Who signed in. The session itself is in the cookie."`
	UserID    string   `json:"user_id" format:"uuid" doc:"id of the user"`
	AccountID string   `json:"account_id" format:"uuid" doc:"the account that the session acts on"`
}

func (s *Service) password(ctx context.Context, in passwordIn) (op.Reply, error) {
	cookie, who, err := s.byPassword(ctx, in)
	switch {
	case in.ReturnTo == "" && err == nil:
		return op.Reply{Header: map[string]string{"Set-Cookie": cookie}, Body: who}, nil
	case in.ReturnTo == "":
		return op.Reply{}, err
	case err != nil:
		return s.again(ctx, signinForm{ReturnTo: in.ReturnTo, Login: in.Login}, err)
	}
	return web.GoTo(Local(in.ReturnTo), cookie), nil
}

// byPassword checks a password and opens a session. It returns the fault
// wrong-password, and fault.RateLimited.
func (s *Service) byPassword(ctx context.Context, in passwordIn) (cookie string, who SignedIn, err error) {
	var u people.Credentials
	var known bool
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		u, known, err = people.CredentialsOf(tx, strings.ToLower(in.Login))
		return err
	})
	if err != nil {
		return "", who, err
	}
	t, err := s.countTry(ctx, guessPassword, strings.ToLower(in.Login), target{u.ID, u.AccountID, u.Email})
	if err != nil {
		return "", who, err
	}
	match, err := s.checks.match(ctx, t.counted != t.home, u.PasswordHash, in.Password)
	if err != nil {
		return "", who, errors.Join(err, s.uncountTry(ctx, t))
	}
	if !match || !known || u.AccountID == "" {
		return "", who, fault.New(fault.Unauthenticated, "wrong-password", "Login and password do not match.")
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		if err := t.succeed(tx); err != nil {
			return err
		}
		if cookie, err = s.Open(tx, u.ID, u.AccountID, op.RequestOf(ctx).Secure); err != nil {
			return err
		}
		return recordSignIn(tx, u.ID, u.AccountID, "password", false)
	})
	return cookie, SignedIn{UserID: u.ID, AccountID: u.AccountID}, err
}

type logoutIn struct {
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"sent by our pages: where the browser goes then"`
}

func (s *Service) logout(ctx context.Context, in logoutIn) (op.Reply, error) {
	a := policy.From(ctx)
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := s.drop(tx, dropSession, a.UserID, a.CredentialID+"%"); err != nil {
			return err
		}
		return signedOutEvent.Record(tx, event.Subject{ID: a.UserID}, event.None{})
	})
	if err != nil {
		return op.Reply{}, err
	}
	if in.ReturnTo != "" {
		return web.GoTo(Local(in.ReturnTo), setCookie("", 0, op.RequestOf(ctx).Secure)), nil
	}
	return op.Reply{Header: map[string]string{"Set-Cookie": setCookie("", 0, op.RequestOf(ctx).Secure)}, Body: struct{}{}}, nil
}
