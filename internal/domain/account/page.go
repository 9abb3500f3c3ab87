package account

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/web"
)

const (
	setupPage  = "setup"
	donePage   = "done"
	closedPage = "closed"
)

// setupForm holds the values of the form of first boot, and why the last attempt
// failed.
type setupForm struct{ Token, Login, Email, Account, Failure string }

// typed shows a browser its form again, with the values that were sent, if they could
// not be decoded.
func typed(ctx context.Context, in any, failure error) (op.Reply, error) {
	i := in.(*setupIn)
	if !op.PrefersPage(i.Accept) {
		return op.Reply{}, failure
	}
	return failed(ctx, failure, setupForm{Token: i.Token, Login: i.Login, Email: i.Email, Account: i.Account})
}

// failed shows a browser why first boot failed: in the form if other values can help,
// or else on a page.
func failed(ctx context.Context, err error, form setupForm) (op.Reply, error) {
	status, line, err := web.Complaint(err)
	switch {
	case err != nil:
		return op.Reply{}, err
	case status == fault.NotFound.Status():
		return render(ctx, status, closedPage, nil)
	}
	form.Failure = line
	return render(ctx, status, setupPage, form)
}

func render(ctx context.Context, status int, name string, data any) (op.Reply, error) {
	return web.Render(ctx, pages, status, name, data, "")
}

var pages = web.Templates(`
{{define "setup"}}{{template "top" "Set up Yardmaster"}}{{template "alert" .Failure}}<p>This makes the first user, who runs the server, and the first account. It works once.</p>
<form method="post" action="/setup/{{.Token}}">
<label for="login">Your login</label><input id="login" name="login" value="{{.Login}}" required autocomplete="username" autocapitalize="none" spellcheck="false" pattern="[a-z0-9\-]{1,39}" title="lower-case letters, digits and hyphens">
<label for="email">E-mail</label><input id="email" name="email" value="{{.Email}}" type="email" required autocomplete="email">
<label for="password">Password</label><input id="password" name="password" type="password" required minlength="10" autocomplete="new-password">
<small>At least 10 characters.</small>
<label for="account">Account</label><input id="account" name="account" value="{{.Account}}" required autocapitalize="none" spellcheck="false" pattern="[a-z0-9\-]{1,39}" title="lower-case letters, digits and hyphens">
<small>Your team's name: the owner of its repositories.</small>
<button class="main">Set up</button>
</form>{{template "end"}}{{end}}
{{define "done"}}{{template "top" "Yardmaster is set up"}}<p>You are <strong>{{.User.Login}}</strong>, owner of <strong>{{.Account.Login}}</strong>. This browser is signed in.</p>
<p><a class="button main" href="/">Go on in the browser</a></p>
<p>Or, on your machine, sign the command line in, add a repository and a model key, and make the machine a box:</p>
<pre>yardmaster login --url {{.Base}}
yardmaster repo add PATH
yardmaster key add --provider anthropic
yardmaster box join</pre>
<p><small>What the API offers is described at <a href="/docs">{{.Base}}/docs</a>.</small></p>
{{template "end"}}{{end}}
{{define "closed"}}{{template "top" "This address is not good"}}<p>It works once. If this server is set up, <a href="/login">sign in</a>. If it is not, it prints its address when it starts.</p>
{{template "end"}}{{end}}`)
