package account

import (
	"context"
	"html/template"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

const (
	group = "Account and platform operator"
	setup = "First boot"
)

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return append([]op.Op{
		op.New(op.Row{ID: "account.me", Method: "GET", Path: "/v1/me", Group: group, Rule: policy.Require(policy.ReadAccount).OrAnyCredential(),
			Summary: "Who is calling: scopes, user, memberships, active account"}, s.me),
		op.New(op.Row{ID: "account.active_account_switch", Method: "POST", Path: "/v1/me/active-account", Group: group, Rule: policy.Require(policy.ReadAccount).OfSession(),
			Refuses: []op.Refusal{{Status: 403, Slug: "session-required"}, {Status: 403, Slug: "not-a-member"}, {Status: 403, Slug: "sso-session"}},
			Summary: "Point the signed-in session at another account of the user"}, s.switchAccount),
		op.New(op.Row{ID: "account.accept_tos", Method: "POST", Path: "/v1/me/accept-tos", Group: group, Rule: policy.Require(policy.ReadAccount).OfUser(),
			Summary: "Record the signed-in user's consent to the terms of service"}, s.acceptTOS),
		op.New(op.Row{ID: "setup.form", Method: "GET", Path: "/setup/{token}", Group: setup, Rule: policy.Public(),
			Summary: "The form that makes the first user and account"}, s.setupForm),
		op.New(op.Row{ID: "setup.run", Method: "POST", Path: "/setup/{token}", Group: setup, Rule: policy.Public(), Status: 201, Form: true, PerAddress: 30,
			Summary: "Make the first user and account, once"}, s.setup),
	}, append(s.operatorOps(), s.ossOps()...)...)
}

func (s *Service) me(ctx context.Context, _ op.None) (Identity, error) {
	a := policy.From(ctx)
	out := Identity{
		Scopes: a.Scopes.Names(), Memberships: []Membership{},
		TOS:        Terms{Version: TermsVersion},
		Credential: CredentialInfo{Kind: a.Credential, ID: a.CredentialID},
	}
	if !a.ExpiresAt.IsZero() {
		out.Credential.ExpiresISO = &a.ExpiresAt
	}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		acct, err := accountByID.One(tx, a.AccountID)
		if err != nil {
			return err
		}
		out.Account = Account{acct.ID, acct.Login, acct.Kind, a.Role, acct.Tier}
		if a.UserID == "" {
			return nil
		}
		u, err := userByID.One(tx, a.UserID)
		if err != nil {
			return err
		}
		approved := u.ApprovedAt != nil
		out.User, out.Approved = u.user(), &approved
		if u.TOSVersion == TermsVersion {
			out.TOS.Accepted, out.TOS.AcceptedAt = true, u.TOSAcceptedAt
		}
		out.Memberships, err = membershipsOf.All(tx, a.UserID)
		return err
	})
	return out, err
}

func (s *Service) acceptTOS(ctx context.Context, _ op.None) (Terms, error) {
	var out Terms
	err := s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		user := policy.From(ctx).UserID
		if _, err := acceptTerms.Exec(tx, user, TermsVersion, tx.Now); err != nil {
			return err
		}
		out = Terms{Version: TermsVersion, Accepted: true, AcceptedAt: &tx.Now}
		return event.Record(tx, event.Change{Kind: "user.tos_accepted", Object: user, Data: map[string]string{"version": TermsVersion}})
	})
	return out, err
}

type switchIn struct {
	Account string `json:"account" minLength:"1" maxLength:"100" doc:"id or login"`
}

func (s *Service) switchAccount(ctx context.Context, in switchIn) (out Account, err error) {
	a := policy.From(ctx)
	if a.Bound {
		return out, fault.New(fault.Forbidden, "sso-session", "This session was opened by the account's identity provider, and is good there only.")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		to, ok, err := MemberAccount(tx, a.UserID, in.Account)
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.Forbidden, "not-a-member", "This user belongs to no such account.")
		}
		acct, err := accountByID.One(tx, to)
		if err != nil {
			return err
		}
		role, err := roleOf.One(tx, to, a.UserID)
		if err != nil {
			return err
		}
		out = Account{acct.ID, acct.Login, acct.Kind, policy.Role(role), acct.Tier}
		hash, err := repoint.One(tx, a.UserID, a.CredentialID+"%", to)
		if err != nil {
			return err
		}
		tx.AfterCommit(func() { s.Repointed(hash) })
		return event.Record(tx, event.Change{Kind: "user.account_switched", Object: a.UserID, Account: to, Data: map[string]string{"from": a.AccountID}})
	})
	return out, err
}

type setupIn struct {
	Token    string `json:"token"`
	Accept   string `header:"Accept"`
	Login    string `json:"login" doc:"of the first user" maxLength:"39"`
	Name     string `json:"name,omitempty" maxLength:"100"`
	Email    string `json:"email" maxLength:"254" pattern:"^[^@\\s]+@[^@\\s]+$"`
	Password string `json:"password" minLength:"10" maxLength:"200"`
	Account  string `json:"account" doc:"login of the first account, the owner of its repositories" maxLength:"39"`
}

// SetupResult is what first boot made.
type SetupResult struct {
	User    User    `json:"user"`
	Account Account `json:"account"`
}

// door answers the same 404 for a wrong token and for a door that is closed.
func (s *Service) door(tx *db.Tx, token string) error {
	done, err := HasUsers(tx)
	if err != nil {
		return err
	}
	if done || s.SetupToken == "" || !seal.Equal(token, s.SetupToken) {
		return fault.Missing("setup address")
	}
	return nil
}

func (s *Service) setup(ctx context.Context, in setupIn) (op.Reply, error) {
	var out SetupResult
	var cookie string
	if err := s.DB.Read(ctx, func(tx *db.Tx) error { return s.door(tx, in.Token) }); err != nil {
		return op.Reply{}, err
	}
	if err := CheckLogin("login", in.Login); err != nil {
		return op.Reply{}, err
	}
	if err := CheckLogin("account", in.Account); err != nil {
		return op.Reply{}, err
	}
	if in.Name == "" {
		in.Name = in.Login
	}
	hash := seal.Password(in.Password)
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := s.door(tx, in.Token); err != nil {
			return err
		}
		u := userRow{ID: id.New(), Login: in.Login, Name: in.Name, Email: strings.ToLower(in.Email), PlatformAdmin: true}
		acct := Account{ID: id.New(), Login: in.Account, Kind: "organization", Role: policy.Owner, Tier: TierSelfHosted}
		if err := create(tx, u, hash, acct.ID, acct.Login, s.Seats); err != nil {
			return err
		}
		var err error
		if cookie, err = s.SignIn(tx, u.ID, acct.ID, op.RequestOf(ctx).Secure); err != nil {
			return err
		}
		out = SetupResult{*u.user(), acct}
		return event.Record(tx, event.Change{Kind: "account.created", Object: acct.ID, Account: acct.ID, Data: map[string]string{"login": acct.Login, "owner": u.Login}})
	})
	if err != nil {
		return op.Reply{}, err
	}
	reply := op.Reply{Header: map[string]string{"Set-Cookie": cookie}, Body: out}
	if strings.Contains(in.Accept, "text/html") {
		var b strings.Builder
		if err := donePage.Execute(&b, out); err != nil {
			return op.Reply{}, err
		}
		reply.ContentType, reply.Body = "text/html; charset=utf-8", b.String()
	}
	return reply, nil
}

type setupFormIn struct {
	Token string `json:"token"`
}

func (s *Service) setupForm(ctx context.Context, in setupFormIn) (op.Reply, error) {
	if err := s.DB.Read(ctx, func(tx *db.Tx) error { return s.door(tx, in.Token) }); err != nil {
		return op.Reply{}, err
	}
	var b strings.Builder
	if err := setupPage.Execute(&b, in); err != nil {
		return op.Reply{}, err
	}
	return op.Reply{
		ContentType: "text/html; charset=utf-8", Body: b.String(),
		Header: map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"},
	}, nil
}

var donePage = template.Must(template.New("done").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Yardmaster is set up</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#1b1f24} h1{font-size:1.4rem} pre{background:#f6f8fa;padding:1rem;border-radius:6px;overflow:auto}</style>
</head><body><h1>Yardmaster is set up</h1>
<p>You are {{.User.Login}}, owner of {{.Account.Login}}. On your machine, sign the command line in and add a repository:</p>
<pre>yardmaster login
yardmaster repo add PATH
yardmaster box join</pre>
</body></html>
`))

var setupPage = template.Must(template.New("setup").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Set up Yardmaster</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem;color:#1b1f24}
h1{font-size:1.4rem} label{display:block;margin:1rem 0 .25rem;font-weight:600}
input{width:100%;box-sizing:border-box;padding:.55rem;border:1px solid #8c959f;border-radius:6px;font:inherit}
small{color:#57606a} button{margin-top:1.5rem;padding:.6rem 1.2rem;border:0;border-radius:6px;background:#0b6b4f;color:#fff;font:inherit;font-weight:600}
</style></head><body>
<h1>Set up Yardmaster</h1>
<p>This makes the first user, who runs the server, and the first account. It works once.</p>
<form method="post" action="/setup/{{.Token}}">
<label for="login">Your login</label><input id="login" name="login" required autocomplete="username" pattern="[a-z0-9-]{1,39}">
<label for="email">E-mail</label><input id="email" name="email" type="email" required autocomplete="email">
<label for="password">Password</label><input id="password" name="password" type="password" required minlength="10" autocomplete="new-password">
<small>At least 10 characters.</small>
<label for="account">Account</label><input id="account" name="account" required pattern="[a-z0-9-]{1,39}">
<small>Your team's name: the owner of its repositories.</small><br>
<button>Set up</button>
</form></body></html>
`))
