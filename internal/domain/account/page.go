package account

import (
	"html/template"
	"maps"
	"slices"
	"strings"

	"yardmaster/internal/fault"
	"yardmaster/internal/op"
)

const (
	htmlType = "text/html"

	setupPage  = "setup"
	donePage   = "done"
	closedPage = "closed"
)

// setupForm is what stands in the form of first boot.
type setupForm struct{ Token, Login, Email, Account, Failure string }

// failed shows a browser why setting up has failed: in the form, if there is
// anything to be done about it there.
func failed(err error, form setupForm) (op.Reply, error) {
	f := fault.From(err)
	if f.Kind == fault.Internal {
		return op.Reply{}, err
	}
	if f.Kind == fault.NotFound {
		return render(f.Kind.Status(), closedPage, nil)
	}
	form.Failure = f.Detail
	for _, field := range slices.Sorted(maps.Keys(f.Fields)) {
		form.Failure = field + " " + strings.Join(f.Fields[field], ", ")
	}
	return render(f.Kind.Status(), setupPage, form)
}

func render(status int, page string, data any) (op.Reply, error) {
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, page, data); err != nil {
		return op.Reply{}, err
	}
	return op.Reply{
		Status: status, ContentType: htmlType + "; charset=utf-8", Body: b.String(),
		Header: map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		},
	}, nil
}

var pages = template.Must(template.New("").Parse(`
{{define "top"}}<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.}} - Yardmaster</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;margin:0;padding:3rem 1rem;background:#f6f8fa;color:#1b1f24;overflow-wrap:anywhere}
main{max-width:26rem;margin:0 auto;padding:1.75rem;background:#fff;border:1px solid #d0d7de;border-radius:12px}
h1{font-size:1.35rem;margin:0 0 .75rem} p{margin:.75rem 0} small{color:#57606a} a{color:#0b6b4f}
[role=alert]{padding:.6rem .8rem;border-radius:6px;background:#fff1ef;color:#8b1a10}
label{display:block;margin:.9rem 0 .25rem;font-weight:600;font-size:.9rem}
input{width:100%;box-sizing:border-box;padding:.5rem .6rem;border:1px solid #8c959f;border-radius:6px;font:inherit}
button{width:100%;margin-top:1.5rem;padding:.6rem;border:0;border-radius:6px;background:#0b6b4f;color:#fff;font:inherit;font-weight:600;cursor:pointer}
pre{background:#f6f8fa;padding:.75rem;border-radius:6px;white-space:pre-wrap}
</style></head><body><main><h1>{{.}}</h1>
{{end}}
{{define "setup"}}{{template "top" "Set up Yardmaster"}}{{if .Failure}}<p role="alert">{{.Failure}}</p>
{{end}}<p>This makes the first user, who runs the server, and the first account. It works once.</p>
<form method="post" action="/setup/{{.Token}}">
<label for="login">Your login</label><input id="login" name="login" value="{{.Login}}" required autocomplete="username" autocapitalize="none" spellcheck="false" pattern="[a-z0-9\-]{1,39}" title="lower-case letters, digits and hyphens">
<label for="email">E-mail</label><input id="email" name="email" value="{{.Email}}" type="email" required autocomplete="email">
<label for="password">Password</label><input id="password" name="password" type="password" required minlength="10" autocomplete="new-password">
<small>At least 10 characters.</small>
<label for="account">Account</label><input id="account" name="account" value="{{.Account}}" required autocapitalize="none" spellcheck="false" pattern="[a-z0-9\-]{1,39}" title="lower-case letters, digits and hyphens">
<small>Your team's name: the owner of its repositories.</small>
<button>Set up</button>
</form></main></body></html>
{{end}}
{{define "done"}}{{template "top" "Yardmaster is set up"}}<p>You are <strong>{{.User.Login}}</strong>, owner of <strong>{{.Account.Login}}</strong>. On your machine, sign the command line in, add a repository and a model key, and make the machine a box:</p>
<pre>yardmaster login --url {{.Base}}
yardmaster repo add PATH
yardmaster key add --provider anthropic
yardmaster box join</pre>
<p><small>What the API offers is described at <a href="/docs">{{.Base}}/docs</a>.</small></p>
</main></body></html>
{{end}}
{{define "closed"}}{{template "top" "This address is not good"}}<p>It works once. If this server is set up, <a href="/login">sign in</a>. If it is not, it prints its address when it starts.</p>
</main></body></html>
{{end}}`))
