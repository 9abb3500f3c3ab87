package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/url"
	"strings"

	"yardmaster/internal/fault"
	"yardmaster/internal/op"
)

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:3rem auto;padding:0 1rem;color:#1b1f24;overflow-wrap:anywhere}
h1{font-size:1.4rem} h2{font-size:1rem;margin-bottom:0} h2.care{color:#a40e26} ul{margin-top:.25rem;padding-left:1.2rem} code{font-size:.9em} small{color:#57606a}
input{width:100%;box-sizing:border-box;padding:.55rem;border:1px solid #8c959f;border-radius:6px;font:inherit}
select{padding:.5rem;border:1px solid #8c959f;border-radius:6px;background:#fff;font:inherit}
button{margin:1.5rem .75rem 0 0;padding:.6rem 1.2rem;border:1px solid #8c959f;border-radius:6px;background:#fff;font:inherit;font-weight:600}
button.yes{border-color:#0b6b4f;background:#0b6b4f;color:#fff}`

// styleHash lets our style in and no other.
var styleHash = func() string {
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

var pages = template.Must(template.New("").Funcs(template.FuncMap{"style": func() template.CSS { return style }}).Parse(`
{{define "top"}}<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.}} - Yardmaster</title><style>{{style}}</style></head><body><h1>{{.}}</h1>
{{end}}
{{define "scopes"}}{{range .}}<h2{{if .Care}} class="care"{{end}}>{{.Title}}</h2><ul>{{range .List}}<li>{{.Words}} <code>{{.Scope}}</code></li>{{end}}</ul>{{end}}{{end}}
{{define "decide"}}<form method="post" action="{{.Action}}"><input type="hidden" name="ticket" value="{{.Ticket}}">
<button class="yes" name="decision" value="authorize">Authorize</button><button name="decision" value="cancel">Cancel</button></form>{{end}}

{{define "consent"}}{{template "top" "Authorize a program"}}{{if gt (len .Accounts) 1}}<form method="get" action="{{.Action}}">{{range $name, $value := .Request}}{{if $value}}<input type="hidden" name="{{$name}}" value="{{$value}}">{{end}}{{end}}
<label for="account">Account</label> <select id="account" name="account">{{range .Accounts}}<option value="{{.Login}}"{{if .Chosen}} selected{{end}}>{{.Login}}</option>{{end}}</select> <button>Change</button></form>
{{end}}<p>A program that calls itself <strong><bdi>{{.Name}}</bdi></strong> asks to act for you, <strong>{{.User}}</strong>, in the account <strong>{{.Account}}</strong>, with these rights:</p>
{{template "scopes" .Scopes}}
<p>If you authorize it, your browser goes to <strong>{{.Destination}}</strong>, and the program gets a token for {{.Days}} days, which you can revoke at any time. Anybody can give a program any name: go on only if you have just started it yourself.</p>
{{template "decide" .}}</body></html>
{{end}}
{{define "device"}}{{template "top" "Sign in a command line"}}<p>A command line that calls itself <strong><bdi>{{.Name}}</bdi></strong> shows the code <strong>{{.Code}}</strong>. It asks to act for you, <strong>{{.User}}</strong>, in the account <strong>{{.Account}}</strong>, with these rights, for {{.Days}} days:</p>
{{template "scopes" .Scopes}}
<p>Go on only if you have just started it yourself and it shows this very code. If somebody sent you here, cancel.</p>
{{template "decide" .}}</body></html>
{{end}}
{{define "enter"}}{{template "top" "Sign in a command line"}}{{if .}}<p role="alert">{{.}}</p>
{{end}}<form method="get" action="/device"><label for="user_code">The code that it shows</label>
<input id="user_code" name="user_code" required autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="BCDF-GHJK"><button class="yes">Continue</button></form></body></html>
{{end}}
{{define "said"}}{{template "top" .Title}}<p>{{.Text}}</p></body></html>
{{end}}`))

const (
	consentPage = "consent"
	devicePage  = "device"
	enterPage   = "enter"
	saidPage    = "said"
)

// consent is what a person decides on.
type consent struct {
	Action, Name, Code, User, Account, Ticket, Destination string
	Scopes                                                 []rights
	Days                                                   int
	// On the consent screen: where the person may let the program act, and the
	// request, to be shown again for another account.
	Accounts []choice
	Request  map[string]string
}

type said struct{ Title, Text string }

// render makes a page that no other site can frame, and that loads and sends
// nothing but its own form; target is where else that may lead.
func render(status int, page string, data any, target string) (op.Reply, error) {
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, page, data); err != nil {
		return op.Reply{}, err
	}
	form := strings.TrimSpace("'self' " + target)
	return op.Reply{
		Status: status, ContentType: "text/html; charset=utf-8", Body: b.String(),
		Header: map[string]string{
			"Content-Security-Policy": fmt.Sprintf("default-src 'none'; style-src %s; form-action %s; frame-ancestors 'none'; base-uri 'none'", styleHash, form),
			"X-Frame-Options":         "DENY",
			// Without any referrer, the form would come from the origin "null".
			"Referrer-Policy": "same-origin",
		},
	}, nil
}

// failed shows a browser what went wrong; everybody else gets the problem.
func failed(accept string, err error) (op.Reply, error) {
	f := fault.From(err)
	if !strings.Contains(accept, "text/html") || f.Kind == fault.Internal {
		return op.Reply{}, err
	}
	return render(f.Kind.Status(), saidPage, said{"This cannot go on", f.Detail}, "")
}

func seeOther(location string) op.Reply {
	return op.Reply{Status: 303, ContentType: "text/html; charset=utf-8", Body: "", Header: map[string]string{"Location": location}}
}

// toSignIn sends a visitor to the sign-in page, and from there back.
func toSignIn(back string) op.Reply {
	return seeOther(loginPath + "?return_to=" + url.QueryEscape(back))
}

// destination names a redirect address for a person.
func destination(redirect string) string {
	u, err := url.Parse(redirect)
	switch {
	case err != nil:
		return redirect
	case u.Scheme == "https":
		return u.Host
	case u.Scheme == "http":
		return u.Host + ", a program on this computer"
	}
	return "the program on this computer that opens " + u.Scheme
}
