package approval

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/stencil"
	"yardmaster/internal/web"
)

// view is the data of the page of a link.
type view struct {
	Question
	Approve bool
	Login   string // of the person
	Until   string // when the link expires
	Refused string // why the link cannot decide any more
	Done    bool   // it has decided
}

func viewOf(tx *db.Tx, l linkRow, q Question) (view, error) {
	u, err := people.ReadUser(tx, l.UserID)
	return view{Question: q, Approve: l.Verb == Approve, Login: u.Login, Until: l.ExpiresAt.UTC().Format("2006-01-02 15:04")}, err
}

func render(ctx context.Context, v view) (op.Reply, error) {
	r, err := web.Render(ctx, pages, 200, "action", v, "")
	if err != nil {
		return r, err
	}
	r.Header["Referrer-Policy"] = "no-referrer" // the address is the credential
	return r, nil
}

var pages = web.Templates(`
{{define "action"}}{{if .Done}}{{if .Approve}}{{template "top" "Approved"}}{{else}}{{template "top" "Declined"}}{{end}}
{{else if .Refused}}{{template "top" "Nothing to decide"}}
{{else if .Approve}}{{template "top" (printf "Approve %s?" (this .Question))}}
{{else}}{{template "top" (printf "Decline %s?" (this .Question))}}
{{end}}{{with .Refused}}<p role="alert">{{.}}</p>
{{end}}{{if .Done}}<p class="done" role="status">{{if .Approve}}{{thereby .Question}}{{else}}{{otherwise .Question}}{{end}}</p>
{{end}}<p><strong><bdi>{{.Repo}}</bdi> #{{.Number}}</strong></p>
<blockquote><bdi>{{.Title}}</bdi></blockquote>
<p>Head <code>{{short .HeadSHA}}</code>{{with .Cost}}, which has cost ${{.}} so far{{end}}</p>
{{if not (or .Done .Refused)}}<p>{{.Text}}</p>
<form method="post"><button{{if .Approve}} class="main"{{end}}>{{if .Approve}}Approve {{thing .Question}}{{else}}Decline {{thing .Question}}{{end}}</button></form>
<p class="note">You decide as {{.Login}}. This link works once, until {{.Until}} UTC.</p>
{{end}}<p><a href="{{.URL}}">See what it changes</a></p>
{{template "end"}}{{end}}`, stencil.Funcs{
	"short": func(sha string) string { return strings.ToValidUTF8(sha[:min(len(sha), 12)], "") },
	"thing": Question.Thing, "this": Question.This, "thereby": Question.Thereby, "otherwise": Question.Otherwise,
})
