package oauth

import (
	"context"
	"net/url"

	"yardmaster/internal/api/op"
	"yardmaster/internal/web"
)

var pages = web.Templates(`
{{define "scopes"}}{{range .}}<h2{{if .Care}} class="care"{{end}}>{{.Title}}</h2><ul>{{range .List}}<li>{{.Words}} <code>{{.Scope}}</code></li>{{end}}</ul>{{end}}{{end}}
{{define "decide"}}<form method="post" action="{{.Action}}"><input type="hidden" name="ticket" value="{{.Ticket}}">
<div class="pair"><button name="decision" value="cancel">Cancel</button><button class="main" name="decision" value="authorize">Authorize</button></div></form>{{end}}

{{define "consent"}}{{template "wide" "Authorize a program"}}{{if gt (len .Accounts) 1}}<form method="get" action="{{.Action}}">{{range $name, $value := .Request}}{{if $value}}<input type="hidden" name="{{$name}}" value="{{$value}}">{{end}}{{end}}
<label for="account">Account</label> <select id="account" name="account">{{range .Accounts}}<option value="{{.Login}}"{{if .Chosen}} selected{{end}}>{{.Login}}</option>{{end}}</select> <button>Change</button></form>
{{end}}<p>A program that calls itself <strong><bdi>{{.Name}}</bdi></strong> asks to act for you, <strong>{{.User}}</strong>, in the account <strong>{{.Account}}</strong>, with these rights:</p>
{{template "scopes" .Scopes}}
<p>If you authorize it, your browser goes to <strong>{{.Destination}}</strong>, and the program gets a token for {{.Days}} days, which you can revoke at any time. Anybody can give a program any name: go on only if you have just started it yourself.</p>
{{template "decide" .}}{{template "end"}}{{end}}
{{define "device"}}{{template "wide" "Sign in a command line"}}<p>A command line that calls itself <strong><bdi>{{.Name}}</bdi></strong> shows the code <strong>{{.Code}}</strong>. It asks to act for you, <strong>{{.User}}</strong>, in the account <strong>{{.Account}}</strong>, with these rights, for {{.Days}} days:</p>
{{template "scopes" .Scopes}}
<p>Go on only if you have just started it yourself and it shows this very code. If somebody sent you here, cancel.</p>
{{template "decide" .}}{{template "end"}}{{end}}
{{define "enter"}}{{template "top" "Sign in a command line"}}{{template "alert" .}}<form method="get" action="/device"><label for="user_code">The code that it shows</label>
<input id="user_code" name="user_code" required autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="BCDF-GHJK"><button class="main">Continue</button></form>{{template "end"}}{{end}}
{{define "said"}}{{template "top" .Title}}<p>{{.Text}}</p>{{template "end"}}{{end}}`)

const (
	consentPage = "consent"
	devicePage  = "device"
	enterPage   = "enter"
	saidPage    = "said"
)

// consent holds the values of a page on which a person decides.
type consent struct {
	Action, Name, Code, User, Account, Ticket, Destination string
	Scopes                                                 []rights
	Days                                                   int
	// Accounts and Request are for the consent screen: the accounts to choose from,
	// and the request, to be shown again for another one.
	Accounts []choice
	Request  map[string]string
}

type said struct{ Title, Text string }

func render(ctx context.Context, status int, name string, data any, target string) (op.Reply, error) {
	return web.Render(ctx, pages, status, name, data, target)
}

// toSignIn sends a visitor to the sign-in page, which leads back.
func toSignIn(back string) op.Reply {
	return web.GoTo(loginPath + "?return_to=" + url.QueryEscape(back))
}

// destination returns a redirect address in a form for people.
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
