package invitation

import (
	"context"
	"html/template"
	"net/url"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/seal"
)

type pageIn struct {
	Token string `json:"token" maxLength:"200"`
}

// page is what an invitation's link opens. Looking at it changes nothing.
func (s *Service) page(ctx context.Context, in pageIn) (op.Reply, error) {
	view := struct{ Account, Email, Status, Token, SignIn string }{Account: "Yardmaster", Token: in.Token, SignIn: "/login?return_to=" + url.QueryEscape("/invite/"+in.Token)}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := seen.Maybe(tx, seal.Hash(in.Token))
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("invitation")
		}
		view.Email, view.Status = r.Email, r.status(tx.Now)
		if r.AccountID != nil {
			view.Account, err = tenant.One(tx, *r.AccountID)
		}
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	var b strings.Builder
	if err := invitePage.Execute(&b, view); err != nil {
		return op.Reply{}, err
	}
	return op.Reply{
		ContentType: "text/html; charset=utf-8", Body: b.String(),
		Header: map[string]string{"Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"},
	}, nil
}

var invitePage = template.Must(template.New("invite").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>An invitation to {{.Account}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#1b1f24} h1{font-size:1.4rem}
button{padding:.6rem 1.2rem;border:0;border-radius:6px;background:#0b6b4f;color:#fff;font:inherit;font-weight:600}</style>
</head><body><h1>An invitation to {{.Account}}</h1>
{{if eq .Status "pending"}}<p>It is for {{.Email}}. <a href="{{.SignIn}}">Sign in</a> as the user with this address, then accept.</p>
<form method="post" action="/v1/invitations/accept"><input type="hidden" name="token" value="{{.Token}}"><button>Accept</button></form>
{{else}}<p>It is {{.Status}}, and grants nothing any more.</p>{{end}}
</body></html>
`))
