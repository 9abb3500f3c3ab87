package invitation

import (
	"context"
	"html/template"
	"net/url"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

type pageIn struct {
	Token string `json:"token" maxLength:"200"`
}

// view is what the page shows.
type view struct {
	Account, Email, Status, Token string
	Login, Own                    string // of who is signed in, and their address; empty for a visitor
	Failure                       string
	SignIn, Base                  string
}

// page is what an invitation's link opens. Looking at it changes nothing.
func (s *Service) page(ctx context.Context, in pageIn) (op.Reply, error) {
	return s.show(ctx, in.Token, "")
}

// confirm accepts for the person whose browser session calls. Others are sent
// to the page, where they prove that the address is theirs.
func (s *Service) confirm(ctx context.Context, in pageIn) (op.Reply, error) {
	a := policy.From(ctx)
	if a.Credential != policy.Session {
		return op.Reply{Status: 303, ContentType: htmlType, Header: map[string]string{"Location": "/invite/" + url.PathEscape(in.Token)}, Body: ""}, nil
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
	return s.show(ctx, in.Token, failure)
}

// reasons are why an invitation grants nothing, for people.
var reasons = map[string]string{
	"other_address":    "You are signed in with another address than the one it is for.",
	"already_member":   "You are a member already; there was nothing to add.",
	"already_approved": "You have access already; there was nothing to add.",
}

func (s *Service) show(ctx context.Context, token, failure string) (op.Reply, error) {
	v := view{Account: "Yardmaster", Token: token, Failure: failure, SignIn: "/login?return_to=" + url.QueryEscape("/invite/"+url.PathEscape(token)), Base: op.RequestOf(ctx).BaseURL}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := seen.Maybe(tx, seal.Hash(token))
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("invitation")
		}
		v.Email, v.Status = r.Email, r.status(tx.Now)
		if a := policy.From(ctx); a.Credential == policy.Session {
			who, err := person.One(tx, a.UserID)
			if err != nil {
				return err
			}
			v.Login, v.Own = who.Login, Address(who.Email)
		}
		if r.AccountID != nil {
			v.Account, err = tenant.One(tx, *r.AccountID)
		}
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	var b strings.Builder
	if err := invitePage.Execute(&b, v); err != nil {
		return op.Reply{}, err
	}
	return op.Reply{
		ContentType: htmlType, Body: b.String(),
		Header: map[string]string{
			"Referrer-Policy": "same-origin", "X-Frame-Options": "DENY",
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		},
	}, nil
}

const htmlType = "text/html; charset=utf-8"

var invitePage = template.Must(template.New("invite").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>An invitation to {{.Account}} - Yardmaster</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;margin:0;padding:3rem 1rem;background:#f6f8fa;color:#1b1f24;overflow-wrap:anywhere}
main{max-width:24rem;margin:0 auto;padding:1.75rem;background:#fff;border:1px solid #d0d7de;border-radius:12px}
h1{font-size:1.35rem;margin:0 0 .75rem} p{margin:.75rem 0} small{color:#57606a} a{color:#0b6b4f}
[role=alert]{padding:.6rem .8rem;border-radius:6px;background:#fff1ef;color:#8b1a10}
pre{background:#f6f8fa;padding:.75rem;border-radius:6px;white-space:pre-wrap}
button{width:100%;padding:.6rem;border:0;border-radius:6px;background:#0b6b4f;color:#fff;font:inherit;font-weight:600;cursor:pointer}
</style></head><body><main><h1>An invitation to {{.Account}}</h1>
{{if .Failure}}<p role="alert">{{.Failure}}</p>
{{end}}{{if ne .Status "pending"}}{{if eq .Status "accepted"}}<p>It was accepted. On your machine, sign the command line in:</p>
<pre>yardmaster login --url {{.Base}}</pre>
{{else}}<p>It is {{.Status}}, and grants nothing any more.</p>
{{end}}{{else if not .Login}}<p>It is for <strong>{{.Email}}</strong>. We mail a code to this address, and the code is all you need.</p>
<form method="post" action="/auth/email"><input type="hidden" name="email" value="{{.Email}}"><input type="hidden" name="invitation" value="{{.Token}}"><input type="hidden" name="return_to" value="/invite/{{.Token}}">
<button>Mail me a code and accept</button></form>
<p><small>Or <a href="{{.SignIn}}">sign in otherwise</a>, then accept.</small></p>
{{else if eq .Own .Email}}<p>It is for {{.Email}}. You are signed in as <strong>{{.Login}}</strong>.</p>
<form method="post" action="/invite/{{.Token}}"><button>Accept</button></form>
{{else}}<p>It is for <strong>{{.Email}}</strong>, and you are signed in as {{.Login}}, who has the address {{.Own}}. Sign out there first, or use another browser.</p>
{{end}}</main></body></html>
`))
