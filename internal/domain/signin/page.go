package signin

import (
	"context"
	"net/url"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/lazy"
	"yardmaster/internal/policy"
	"yardmaster/internal/stencil"
	"yardmaster/internal/web"
)

type loginIn struct {
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"path of this server to go to then"`
}

// form shows the sign-in page: alone, or after an attempt that failed.
func (s *Service) form(ctx context.Context, in loginIn) (op.Reply, error) {
	if a := policy.From(ctx); a.Credential == policy.Session {
		if to := Local(in.ReturnTo); to != "/" {
			return web.GoTo(to), nil
		}
		var who person
		var err error
		who.Login, who.Account, err = s.Who(ctx)
		if err != nil {
			return op.Reply{}, err
		}
		return render(ctx, 200, inPage, who)
	}
	var founded bool
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		founded, err = people.HasUsers(tx)
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	if !founded {
		return render(ctx, 200, freshPage, nil)
	}
	return s.again(ctx, signinForm{ReturnTo: in.ReturnTo}, nil)
}

type signinForm struct {
	ways
	ReturnTo, Login, Org, Failure string
}

type codeForm struct {
	Email, ReturnTo, Invitation, Failure string
	Mailed                               bool
}

// person is the signed-in user and the account for which the session acts.
type person struct{ Login, Account string }

// Who returns the logins of the user of the calling session and of the account for
// which it acts. Without a session both are empty.
func (s *Service) Who(ctx context.Context) (login, account string, err error) {
	a := policy.From(ctx)
	if a.Credential != policy.Session {
		return "", "", nil
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		login, account, _, err = people.Names(tx, a.UserID, a.AccountID)
		return err
	})
	return login, account, err
}

// Local returns path if it is a path of this server, and otherwise the root, so that
// the sign-in page cannot send people to other servers.
func Local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") ||
		strings.Contains(path, `\`) {
		return "/"
	}
	return path
}

// typed shows the page again with the values that were sent, if they could not be
// decoded.
func (s *Service) typed(ctx context.Context, in any, failure error) (op.Reply, error) {
	var form signinForm
	switch in := in.(type) {
	case *passwordIn:
		form = signinForm{ReturnTo: in.ReturnTo, Login: in.Login}
	case *emailIn:
		form.ReturnTo = in.ReturnTo
	case *forgottenIn:
		form.ReturnTo = in.ReturnTo
	}
	if form.ReturnTo == "" {
		return op.Reply{}, failure
	}
	return s.again(ctx, form, failure)
}

// again shows the page again, with the failure if there is one.
func (s *Service) again(ctx context.Context, form signinForm, failure error) (op.Reply, error) {
	w, err := s.ways(ctx)
	if err != nil {
		return op.Reply{}, err
	}
	form.ways, form.ReturnTo = w, Local(form.ReturnTo)
	status, line, err := web.Complaint(failure)
	if err != nil {
		return op.Reply{}, err
	}
	form.Failure = line
	return render(ctx, status, signinPage, form)
}

// Failed shows the sign-in page with a failure that happened elsewhere.
func (s *Service) Failed(ctx context.Context, returnTo string, failure error) (op.Reply, error) {
	return s.again(ctx, signinForm{ReturnTo: returnTo}, failure)
}

// Offer shows the sign-in page with the login of an organisation filled in.
func (s *Service) Offer(ctx context.Context, returnTo, org string) (op.Reply, error) {
	return s.again(ctx, signinForm{ReturnTo: returnTo, Org: org}, nil)
}

const (
	freshPage  = "fresh"
	inPage     = "in"
	signinPage = "signin"
	codePage   = "code"

	passwordPage = "password"
	linkPage     = "link"
	usedPage     = "used"

	forgottenPage = "forgotten"
	resetPage     = "reset"
)

func render(ctx context.Context, status int, name string, data any) (op.Reply, error) {
	return web.Render(ctx, pages, status, name, data, "")
}

var pages = web.Templates(`
{{define "fresh"}}{{template "top" "This server is not set up yet"}}<p>Nobody can sign in, since it has no user. Whoever started it finds an address in what it printed, which ends in <code>/setup/</code> and a word: it makes the first user.</p>
{{template "end"}}{{end}}
{{define "signin"}}{{template "top" "Sign in"}}{{template "alert" .Failure}}<form method="post" action="/auth/password"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
<label for="login">Login or e-mail</label><input id="login" name="login" value="{{.Login}}" required maxlength="254" autocomplete="username" autocapitalize="none" spellcheck="false">
<label for="password">Password</label><input id="password" name="password" type="password" required maxlength="200" autocomplete="current-password">
<button class="main">Sign in</button></form>
<section><details><summary>Forgotten the password?</summary><form method="post" action="/auth/password/forgotten"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
<label for="forgotten">E-mail</label><input id="forgotten" name="email" type="email" required maxlength="254" autocomplete="email">
<button>{{if .Email}}Mail me a link to a new one{{else}}Make a link to a new one{{end}}</button></form></details></section>
<section><form method="post" action="/auth/email"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
<label for="email">E-mail, without a password</label><input id="email" name="email" type="email" required maxlength="254" autocomplete="email" placeholder="you@example.com">
{{if .Email}}<button>Mail me a code</button>{{else}}<small>This server sends no mail: whoever runs it finds the code on it and tells it to you.</small><button>Make a code</button>{{end}}</form></section>
{{if .SSO}}<section><form method="get" action="/auth/oidc"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
<label for="org">With your organisation</label><input id="org" name="org" value="{{.Org}}" required autocomplete="organization" autocapitalize="none" spellcheck="false" placeholder="its login here">
<button>Continue</button></form></section>
{{end}}{{if .GitHub}}<section><a class="button" href="/auth/github/start?return_to={{.ReturnTo}}">Sign in with GitHub</a></section>
{{end}}{{template "end"}}{{end}}
{{define "code"}}{{template "top" "Enter the code"}}{{template "alert" .Failure}}{{if .Mailed}}<p>If <strong>{{.Email}}</strong> may sign in here, a code of six digits is on its way there.</p>
{{else}}<p>This server sends no mail. If <strong>{{.Email}}</strong> may sign in here, a code of six digits was made: ask whoever runs the server for it. On the server, in the folder it was started in, this shows it:</p>
<pre>yardmaster mail {{.Email | arg}}</pre>
{{end}}<form method="post" action="/auth/email/verify"><input type="hidden" name="email" value="{{.Email}}"><input type="hidden" name="return_to" value="{{.ReturnTo}}"><input type="hidden" name="invitation" value="{{.Invitation}}">
<label for="code">Code</label><input id="code" name="code" required autofocus inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 ]{6,7}" maxlength="7">
<button class="main">Sign in</button></form>
<section><form method="post" action="/auth/email"><input type="hidden" name="email" value="{{.Email}}"><input type="hidden" name="return_to" value="{{.ReturnTo}}"><input type="hidden" name="invitation" value="{{.Invitation}}">
<small>It is good for ten minutes.</small><button>{{if .Mailed}}Mail me another{{else}}Make another{{end}}</button></form></section>
{{template "end"}}{{end}}
{{define "password"}}{{template "top" (or (and .Has "Another password") "Choose a password")}}{{template "alert" .Failure}}{{if .Refused}}<p>{{.Refused}}</p>
{{with .Again}}{{template "signout" .}}
{{end}}<p><a href="{{.ReturnTo}}">Go on without</a></p>
{{else}}{{if not .Has}}<p>You are signed in as <strong>{{.Login}}</strong>. With a password you can sign in again; without one you need another code each time.</p>
{{end}}<form method="post" action="/auth/password/set"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
{{if .Has}}<label for="now">Password until now</label><input id="now" name="password_now" type="password" required maxlength="200" autocomplete="current-password">
{{end}}<label for="password">New password</label><input id="password" name="password" type="password" required minlength="10" maxlength="200" autocomplete="new-password">
<small>At least 10 characters.</small>
<button class="main">Set it</button></form>
<p><a href="{{.ReturnTo}}">Not now</a></p>
{{end}}{{template "end"}}{{end}}
{{define "link"}}{{template "top" (print "Sign in as " .Login)}}<p>This address signs this browser in as <strong>{{.Login}}</strong>{{with .Account}}, in the account <strong>{{.}}</strong>{{end}}. It does so once.</p>
<form method="post" action="/auth/link/{{.Token}}"><button class="main">Sign in</button></form>
<p><a href="/login?return_to=%2Fui%2F">Sign in in another way</a></p>
{{template "end"}}{{end}}
{{define "used"}}{{template "top" "This address is not good any more"}}<p>It has been used, or is too old: it is good once, for an hour.</p>
<p><a class="button main" href="/login?return_to=%2Fui%2F">Go to the sign-in page</a></p>
{{template "end"}}{{end}}
{{define "forgotten"}}{{template "top" "A new password"}}{{if .Mailed}}<p>If somebody here has the address <strong>{{.Email}}</strong>, a link to a new password is on its way there.</p>
{{else}}<p>This server sends no mail. If somebody here has the address <strong>{{.Email}}</strong>, a link to a new password was made: ask whoever runs the server for it. On the server, in the folder it was started in, this shows it:</p>
<pre>yardmaster mail {{.Email | arg}}</pre>
{{end}}<p><small>It works once, within an hour.</small></p>
{{template "end"}}{{end}}
{{define "reset"}}{{template "top" (print "A new password of " .Login)}}{{template "alert" .Failure}}<form method="post" action="/auth/password/reset/{{.Token}}"><input type="hidden" name="return_to" value="/login">
<label for="password">New password</label><input id="password" name="password" type="password" required minlength="10" maxlength="200" autocomplete="new-password">
<small>At least 10 characters. All browsers that are signed in as you are signed out.</small>
<button class="main">Set it</button></form>
{{template "end"}}{{end}}
{{define "in"}}{{template "top" "You are signed in"}}<p>You are <strong>{{.Login}}</strong>{{with .Account}}, in the account <strong>{{.}}</strong>{{end}}.</p>
<p><a href="/">Go to the start</a></p>
{{template "signout" "/login"}}{{template "end"}}{{end}}`, stencil.Funcs{"arg": arg})

// plain are the addresses that are the same word in every shell.
var plain = lazy.New(`^[A-Za-z0-9._%+@-]+$`)

// arg is an address as the argument of a command that a person copies to a terminal; empty
// if it would be another word there.
func arg(address string) string {
	if !plain.MatchString(address) || strings.HasPrefix(address, "-") {
		return ""
	}
	return address
}
