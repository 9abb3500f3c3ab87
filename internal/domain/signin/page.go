package signin

import (
	"context"
	"html/template"
	"net/url"
	"strings"

	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

type loginIn struct {
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"path of this server to go to then"`
}

// form is the sign-in page: on its own, or after an attempt that failed.
func (s *Service) form(ctx context.Context, in loginIn) (op.Reply, error) {
	if to := Local(in.ReturnTo); to != "/" && policy.From(ctx).Credential == policy.Session {
		return goTo(to, ""), nil
	}
	return s.again(ctx, signinForm{ReturnTo: in.ReturnTo}, nil)
}

type signinForm struct {
	ways
	ReturnTo, Login, Org, Failure string
}

type codeForm struct{ Email, ReturnTo, Invitation, Failure string }

// Local is a path of this server, or the root if what came is anything else:
// nobody may use the sign-in page to send people elsewhere.
func Local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.Contains(path, `\`) {
		return "/"
	}
	return path
}

// goTo sends the browser on, with a cookie if there is one to set.
func goTo(path, cookie string) op.Reply {
	r := op.Reply{Status: 303, ContentType: htmlType, Header: map[string]string{"Location": path}, Body: ""}
	if cookie != "" {
		r.Cookies = []string{cookie}
	}
	return r
}

// again shows the page, once more with what went wrong.
func (s *Service) again(ctx context.Context, form signinForm, failure error) (op.Reply, error) {
	w, err := s.ways(ctx)
	if err != nil {
		return op.Reply{}, err
	}
	form.ways, form.ReturnTo = w, Local(form.ReturnTo)
	status := 200
	if failure != nil {
		f := fault.From(failure)
		if f.Kind == fault.Internal {
			return op.Reply{}, failure
		}
		status, form.Failure = f.Kind.Status(), f.Detail
	}
	return render(status, signinPage, form)
}

// Failed is the sign-in page with what went wrong elsewhere.
func (s *Service) Failed(ctx context.Context, returnTo string, failure error) (op.Reply, error) {
	return s.again(ctx, signinForm{ReturnTo: returnTo}, failure)
}

// Offer is the sign-in page with the login of an organisation filled in.
func (s *Service) Offer(ctx context.Context, returnTo, org string) (op.Reply, error) {
	return s.again(ctx, signinForm{ReturnTo: returnTo, Org: org}, nil)
}

const (
	htmlType = "text/html; charset=utf-8"

	signinPage = "signin"
	codePage   = "code"
)

func render(status int, page string, data any) (op.Reply, error) {
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, page, data); err != nil {
		return op.Reply{}, err
	}
	return op.Reply{
		Status: status, ContentType: htmlType, Body: b.String(),
		Header: map[string]string{
			// What follows a sign-in may lead on to a program's own address, or
			// to an identity provider, which form-action would forbid.
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
			"X-Frame-Options":         "DENY",
			"Referrer-Policy":         "same-origin",
		},
	}, nil
}

var pages = template.Must(template.New("").Parse(`
{{define "top"}}<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.}} - Yardmaster</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;margin:0;padding:3rem 1rem;background:#f6f8fa;color:#1b1f24;overflow-wrap:anywhere}
main{max-width:22rem;margin:0 auto;padding:1.75rem;background:#fff;border:1px solid #d0d7de;border-radius:12px}
h1{font-size:1.35rem;margin:0 0 1rem} p{margin:.75rem 0} small{color:#57606a} a{color:#0b6b4f}
[role=alert]{padding:.6rem .8rem;border-radius:6px;background:#fff1ef;color:#8b1a10}
label{display:block;margin:.9rem 0 .25rem;font-weight:600;font-size:.9rem}
input{width:100%;box-sizing:border-box;padding:.5rem .6rem;border:1px solid #8c959f;border-radius:6px;font:inherit;background:#fff;color:inherit}
button,.way{display:block;width:100%;box-sizing:border-box;margin-top:1rem;padding:.55rem;border:1px solid #8c959f;border-radius:6px;background:#fff;color:#1b1f24;font:inherit;font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
button.yes{border-color:#0b6b4f;background:#0b6b4f;color:#fff}
input:focus-visible,button:focus-visible,.way:focus-visible{outline:2px solid #0b6b4f;outline-offset:2px}
section{margin-top:1.5rem;padding-top:.75rem;border-top:1px solid #d0d7de}
#code{font-size:1.4rem;letter-spacing:.35em;text-align:center}
</style></head><body><main><h1>{{.}}</h1>
{{end}}
{{define "signin"}}{{template "top" "Sign in"}}{{if .Failure}}<p role="alert">{{.Failure}}</p>
{{end}}<form method="post" action="/auth/password"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
<label for="login">Login or e-mail</label><input id="login" name="login" value="{{.Login}}" required autocomplete="username">
<label for="password">Password</label><input id="password" name="password" type="password" required autocomplete="current-password">
<button class="yes">Sign in</button></form>
{{if .Email}}<section><form method="post" action="/auth/email"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
<label for="email">Without a password</label><input id="email" name="email" type="email" required autocomplete="email" placeholder="you@example.com">
<button>Mail me a code</button></form></section>
{{end}}{{if .SSO}}<section><form method="get" action="/auth/oidc"><input type="hidden" name="return_to" value="{{.ReturnTo}}">
<label for="org">With your organisation</label><input id="org" name="org" value="{{.Org}}" required autocomplete="organization" autocapitalize="none" spellcheck="false" placeholder="its login here">
<button>Continue</button></form></section>
{{end}}{{if .GitHub}}<section><a class="way" href="/auth/github/start?return_to={{.ReturnTo}}">Sign in with GitHub</a></section>
{{end}}</main></body></html>
{{end}}
{{define "code"}}{{template "top" "Enter the code"}}{{if .Failure}}<p role="alert">{{.Failure}}</p>
{{end}}<p>If <strong>{{.Email}}</strong> may sign in here, a code of six digits is on its way there.</p>
<form method="post" action="/auth/email/verify"><input type="hidden" name="email" value="{{.Email}}"><input type="hidden" name="return_to" value="{{.ReturnTo}}"><input type="hidden" name="invitation" value="{{.Invitation}}">
<label for="code">Code</label><input id="code" name="code" required autofocus inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 ]{6,7}" maxlength="7">
<button class="yes">Sign in</button></form>
<section><form method="post" action="/auth/email"><input type="hidden" name="email" value="{{.Email}}"><input type="hidden" name="return_to" value="{{.ReturnTo}}"><input type="hidden" name="invitation" value="{{.Invitation}}">
<small>It is good for ten minutes.</small><button>Mail me another</button></form></section>
</main></body></html>
{{end}}`))
