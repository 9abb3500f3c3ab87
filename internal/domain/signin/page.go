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
	if to := local(in.ReturnTo); to != "/" && policy.From(ctx).Credential == policy.Session {
		return goTo(to, ""), nil
	}
	return render(200, signinForm{ReturnTo: local(in.ReturnTo)})
}

type signinForm struct{ ReturnTo, Login, Failure string }

// local is a path of this server, or the root if what came is anything else:
// nobody may use the sign-in page to send people elsewhere.
func local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.Contains(path, `\`) {
		return "/"
	}
	return path
}

// goTo sends the browser on, with a cookie if there is one to set.
func goTo(path, cookie string) op.Reply {
	h := map[string]string{"Location": path}
	if cookie != "" {
		h["Set-Cookie"] = cookie
	}
	return op.Reply{Status: 303, ContentType: "text/html; charset=utf-8", Header: h, Body: ""}
}

// again shows the page once more with what went wrong.
func again(in passwordIn, err error) (op.Reply, error) {
	f := fault.From(err)
	if f.Kind == fault.Internal {
		return op.Reply{}, err
	}
	return render(f.Kind.Status(), signinForm{local(in.ReturnTo), in.Login, f.Detail})
}

func render(status int, f signinForm) (op.Reply, error) {
	var b strings.Builder
	if err := signinPage.Execute(&b, f); err != nil {
		return op.Reply{}, err
	}
	return op.Reply{
		Status: status, ContentType: "text/html; charset=utf-8", Body: b.String(),
		Header: map[string]string{
			// What follows a sign-in may lead on to a program's own address,
			// which form-action would forbid.
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
			"X-Frame-Options":         "DENY",
			"Referrer-Policy":         "same-origin",
		},
	}, nil
}

var signinPage = template.Must(template.New("signin").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in - Yardmaster</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem;color:#1b1f24}
h1{font-size:1.4rem} label{display:block;margin:1rem 0 .25rem;font-weight:600}
input{width:100%;box-sizing:border-box;padding:.55rem;border:1px solid #8c959f;border-radius:6px;font:inherit}
button{margin-top:1.5rem;padding:.6rem 1.2rem;border:0;border-radius:6px;background:#0b6b4f;color:#fff;font:inherit;font-weight:600}
</style></head><body>
<h1>Sign in</h1>
{{if .Failure}}<p role="alert">{{.Failure}}</p>
{{end}}<form method="post" action="/auth/password">
<input type="hidden" name="return_to" value="{{.ReturnTo}}">
<label for="login">Login or e-mail</label><input id="login" name="login" value="{{.Login}}" required autocomplete="username">
<label for="password">Password</label><input id="password" name="password" type="password" required autocomplete="current-password">
<button>Sign in</button>
</form></body></html>
`))
