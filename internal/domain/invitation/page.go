package invitation

import (
	"cmp"
	"context"
	"net/url"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
	"yardmaster/internal/web"
)

type pageIn struct {
	Token  string `json:"token" maxLength:"200"`
	Accept string `header:"Accept"`
}

// view holds the values of the page of an invitation.
type view struct {
	Account, For, Status, Token string
	Email                       string // the address it is for; empty: it is for a login
	Login, Own                  string // of the signed-in user: the login, and what For would be; empty for a visitor
	Failure                     string
	SignIn, Enter, Base         string
	Mailed                      bool
}

// page shows the page to which the link of an invitation leads. It changes nothing.
func (s *Service) page(ctx context.Context, in pageIn) (op.Reply, error) {
	return s.show(ctx, in, "")
}

// confirm accepts the invitation for the user of the browser session. Visitors are
// sent to the page, where they can prove that the address is theirs.
func (s *Service) confirm(ctx context.Context, in pageIn) (op.Reply, error) {
	a := policy.From(ctx)
	if a.Credential != policy.Session {
		return web.GoTo("/invite/" + url.PathEscape(in.Token)), nil
	}
	if err := unbound(a); err != nil {
		return op.Reply{}, err
	}
	var out Acceptance
	err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		out, err = s.Redeem(tx, in.Token, a.UserID)
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	failure := ""
	if out.Reason != nil {
		failure = reasons[*out.Reason]
	}
	return s.show(ctx, in, failure)
}

// reasons are the texts for the reasons of Acceptance.
var reasons = map[string]string{
	"other_address":    "You are signed in as somebody else than the one it is for.",
	"already_member":   "You are a member already; there was nothing to add.",
	"already_approved": "You have access already; there was nothing to add.",
}

func (s *Service) show(ctx context.Context, in pageIn, failure string) (op.Reply, error) {
	token := in.Token
	v := view{
		Account: "Yardmaster",
		Mailed:  s.Mailed,
		Token:   token,
		Failure: failure,
		SignIn:  "/login?return_to=" + url.QueryEscape("/invite/"+url.PathEscape(token)),
		Enter:   "/login?return_to=%2Fui%2F",
		Base:    op.RequestOf(ctx).BaseURL,
	}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := seen.Maybe(tx, seal.Hash(token))
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("invitation")
		}
		v.Email, v.For, v.Status = r.Email, cmp.Or(r.Login, r.Email), r.status(tx.Now)
		if a := policy.From(ctx); a.Credential == policy.Session {
			who, err := people.ReadUser(tx, a.UserID)
			if err != nil {
				return err
			}
			v.Login, v.Own = who.Login, Address(who.Email)
			if r.Login != "" {
				v.Own = who.Login
			}
		}
		if r.AccountID != nil {
			v.Account, err = people.AccountLogin(tx, *r.AccountID)
		}
		return err
	})
	if fault.IsKind(err, fault.NotFound) && op.PrefersPage(in.Accept) {
		return web.Render(ctx, pages, 404, "unknown", nil, "")
	}
	if err != nil {
		return op.Reply{}, err
	}
	return web.Render(ctx, pages, 200, "invite", v, "")
}

var pages = web.Templates(`
{{define "unknown"}}{{template "top" "There is no such invitation"}}<p>The link is mistyped, or a part of it is missing. Open it from the mail again, or copy the whole line.</p>
<p>If that does not help, ask whoever invited you to send another one. If you have been here before, <a href="/login">sign in</a>.</p>
{{template "end"}}{{end}}
{{define "invite"}}{{template "top" (print "An invitation to " .Account)}}{{template "alert" .Failure}}{{if ne .Status "pending"}}{{if eq .Status "accepted"}}<p>It was accepted.{{if not .Login}} If it was you, <a href="{{.Enter}}">sign in</a>.{{else if eq .Own .For}} You are signed in as <strong>{{.Login}}</strong>.{{end}}</p>
<p>On your machine, sign the command line in:</p>
<pre>yardmaster login --url {{.Base}}</pre>
<p><small>What there is to do here: <a href="/">the start page</a>.</small></p>
{{else}}<p>It is {{.Status}}, and grants nothing any more. Ask whoever invited you for another one.</p>
{{end}}{{else if and (not .Login) (not .Email)}}<p>It is for <strong>{{.For}}</strong>. <a href="{{.SignIn}}">Sign in as {{.For}}</a>, then accept.</p>
{{else if not .Login}}{{if .Mailed}}<p>It is for <strong>{{.Email}}</strong>. We mail a code to this address, and the code is all you need.</p>
{{else}}<p>It is for <strong>{{.Email}}</strong>. A code of six digits shows that you are who it is for. This server sends no mail: ask whoever runs it for the code that the button makes. The next page says how it is found.</p>
{{end}}<form method="post" action="/auth/email"><input type="hidden" name="email" value="{{.Email}}"><input type="hidden" name="invitation" value="{{.Token}}"><input type="hidden" name="return_to" value="/invite/{{.Token}}">
<button class="main">{{if .Mailed}}Mail me a code and accept{{else}}Make a code and accept{{end}}</button></form>
<p><small>Or <a href="{{.SignIn}}">sign in otherwise</a>, then accept.</small></p>
{{else if eq .Own .For}}<p>It is for {{.For}}. You are signed in as <strong>{{.Login}}</strong>.</p>
<form method="post" action="/invite/{{.Token}}"><button class="main">Accept</button></form>
{{else}}<p>It is for <strong>{{.For}}</strong>, and you are signed in here as <strong>{{.Login}}</strong>{{if .Email}}, who has the address {{.Own}}{{end}}. Sign out, and come back as the one it is for.</p>
{{template "signout" (print "/invite/" .Token)}}{{end}}{{template "end"}}{{end}}`)
