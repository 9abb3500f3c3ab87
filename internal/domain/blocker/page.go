package blocker

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// FixLink tells which blocker of which account the token of a fix link is for,
// as an actor who may see and fill in that one form; false for what is no
// token of a fix link, or an expired one.
func (s *Service) FixLink(ctx context.Context, token string) (actor policy.Actor, ok bool, err error) {
	if strings.Count(token, ".") != 2 {
		return actor, false, nil
	}
	l, bad := s.Ring.ReadLink(linkPurpose, token)
	if bad != nil {
		return actor, false, nil
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		ok = tx.Now.Before(l.Expires)
		return nil
	})
	return actorOf(l), ok, err
}

func actorOf(l seal.Link) policy.Actor {
	return policy.Actor{Credential: policy.FixLink, CredentialID: l.Subject, AccountID: l.Account, ExpiresAt: l.Expires}
}

var errLinkExpired = fault.New(fault.Gone, "fix-link-expired", "This link has expired, or its form is closed. Whoever may write secrets finds a new one on the list of blockers.")

// visit is a request with a fix link: who comes, in a context that says so.
func (s *Service) visit(ctx context.Context, token string) (context.Context, seal.Link, error) {
	l, err := s.Ring.ReadLink(linkPurpose, token)
	if err != nil {
		return ctx, l, fault.New(fault.Invalid, "", "This is not a link of ours, or a part of it is missing.").Because(err)
	}
	actor := actorOf(l)
	actor.RequestID = op.RequestOf(ctx).ID
	return policy.With(db.WithAccount(ctx, l.Account), actor), l, nil
}

type formIn struct {
	JWT    string `json:"jwt"`
	Accept string `header:"Accept"`
}

// view is what the page shows.
type view struct {
	BlockerSpec
	Landed  []string
	Stanzas []MCPStanza
	Said    string
}

// Open tells whether there is something left to fill in.
func (v view) Open() bool {
	for _, f := range v.Fields {
		if f.Submittable {
			return true
		}
	}
	return false
}

func (s *Service) form(ctx context.Context, in formIn) (op.Reply, error) {
	ctx, l, err := s.visit(ctx, in.JWT)
	if err != nil {
		return failed(in.Accept, err)
	}
	var v view
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, l.Subject)
		if fault.IsKind(err, fault.NotFound) || err == nil && (r.State != Open || !tx.Now.Before(l.Expires)) {
			return errLinkExpired
		}
		if err == nil {
			v.BlockerSpec, err = s.specOf(tx, &r)
		}
		return err
	})
	if err != nil {
		return failed(in.Accept, err)
	}
	return render(200, "form", v)
}

type redeemIn struct {
	JWT    string            `json:"jwt"`
	Accept string            `header:"Accept"`
	Fields map[string]string `json:"fields,omitempty" maxItems:"100" doc:"by the name of the field; of mcp:<server> three, with .url, .transport and .token behind it"`
}

func (s *Service) redeem(ctx context.Context, in redeemIn) (op.Reply, error) {
	ctx, l, err := s.visit(ctx, in.JWT)
	if err != nil {
		return failed(in.Accept, err)
	}
	values := entries(in.Fields)
	var v view
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		v = view{}
		if !tx.Now.Before(l.Expires) {
			return errLinkExpired
		}
		r, err := s.lock(tx, l.Subject)
		if fault.IsKind(err, fault.NotFound) {
			return errLinkExpired
		}
		if err != nil {
			return err
		}
		out, err := s.land(tx, &r, values)
		if err != nil {
			return err
		}
		v.Landed, v.Stanzas = out.Landed, out.Stanzas
		v.BlockerSpec, err = s.specOf(tx, &r)
		return err
	})
	if err != nil {
		return failed(in.Accept, err)
	}
	return render(200, "form", v)
}

// entries reads a form. A field that is left empty is not filled in.
func entries(form map[string]string) map[string]entry {
	out := map[string]entry{}
	for name, value := range form {
		if !strings.HasPrefix(name, mcpPrefix) {
			if strings.TrimSpace(value) != "" {
				out[name] = entry{text: strings.ReplaceAll(value, "\r\n", "\n")}
			}
			continue
		}
		name, part, _ := strings.Cut(name, ".")
		e := out[name]
		if e.server == nil {
			e.server = &server{}
		}
		switch value = strings.TrimSpace(value); part {
		case "url":
			e.server.URL = value
		case "transport":
			e.server.Transport = value
		case "token":
			e.server.Token = value
		}
		out[name] = e
	}
	for name, e := range out {
		if e.server != nil && e.server.URL == "" && e.server.Token == "" {
			delete(out, name)
		}
	}
	return out
}

const style = `*{box-sizing:border-box}body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:0 auto;padding:1.25rem 1rem 3rem;color:#1b1f24;background:#fff;overflow-wrap:anywhere}
h1{font-size:1.35rem;line-height:1.25;margin:.5rem 0 1rem}h2{font-size:1rem;margin:2rem 0 .25rem}
blockquote{margin:1rem 0;padding:.75rem 1rem;border-left:4px solid #8c959f;background:#f6f8fa;white-space:pre-wrap}
fieldset{margin:1.25rem 0 0;padding:.25rem 1rem 1rem;border:1px solid #8c959f;border-radius:8px;min-width:0}legend{padding:0 .4rem;font-weight:600}
label{display:block;margin-top:.75rem;font-weight:600}small{display:block;color:#57606a;font-weight:400}code{font-size:.95em}
input,select,textarea{display:block;width:100%;margin-top:.3rem;padding:.65rem;border:1px solid #8c959f;border-radius:6px;font:inherit;background:#fff;color:inherit}
textarea{min-height:5rem;font-family:ui-monospace,monospace;-webkit-text-security:disc}
pre{padding:.75rem;border-radius:6px;background:#f6f8fa;overflow-x:auto;font-size:.85rem}
button{width:100%;margin-top:1.5rem;padding:.8rem;border:0;border-radius:6px;background:#0b6b4f;color:#fff;font:inherit;font-weight:600}
.done{color:#0b6b4f;font-weight:600}.note{border-left:4px solid #9a6700;background:#fff8c5;padding:.6rem 1rem}
@media(prefers-color-scheme:dark){body,input,select,textarea{background:#0d1117;color:#e6edf3}blockquote,pre{background:#161b22}small{color:#9da7b1}.done{color:#3fb950}.note{background:#2d2400}}`

// policyHeader lets in our own style and our own form, and nothing else.
var policyHeader = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

func render(status int, page string, data any) (op.Reply, error) {
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, page, data); err != nil {
		return op.Reply{}, err
	}
	return op.Reply{Status: status, ContentType: "text/html; charset=utf-8", Body: b.String(), Header: map[string]string{
		"Content-Security-Policy": policyHeader, "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex",
	}}, nil
}

// failed shows a browser what went wrong; everybody else gets the problem.
func failed(accept string, err error) (op.Reply, error) {
	f := fault.From(err)
	if !strings.Contains(accept, "text/html") || f.Kind == fault.Internal {
		return op.Reply{}, err
	}
	said := []string{f.Detail}
	for name, messages := range f.Fields {
		said = append(said, strings.TrimPrefix(name, "fields.")+": "+strings.Join(messages, "; ")+".")
	}
	return render(f.Kind.Status(), "failed", said)
}

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"style":  func() template.CSS { return style },
	"server": func(name string) string { return strings.TrimPrefix(name, mcpPrefix) },
}).Parse(`
{{define "top"}}<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{{.}} - Yardmaster</title><style>{{style}}</style></head><body>
<h1>{{.}}</h1>
{{end}}
{{define "about"}}<small>{{with .Description}}<bdi>{{.}}</bdi>{{end}}{{if .Replaces}} <strong>The vault has a value by this name; yours replaces it.</strong>{{end}}</small>{{end}}
{{define "form"}}{{if .Open}}{{template "top" "An agent needs something of you"}}{{else}}{{template "top" "Thank you"}}{{end}}
{{with .Landed}}<p class="done" role="status">Kept: {{range $i, $n := .}}{{if $i}}, {{end}}<bdi>{{$n}}</bdi>{{end}}. It cannot be read back.</p>
{{end}}{{range .Stanzas}}<h2>For the policy file</h2>
<p>Add this to <code>.svc/policy.yml</code> of <bdi>{{$.Repo}}</bdi>:</p>
<pre>{{.YAML}}</pre>
{{end}}{{if .Open}}<p>It works on <strong><bdi>{{.Repo}}</bdi></strong> and cannot go on. In its own words:</p>
<blockquote><bdi>{{.Question}}</bdi></blockquote>
<p class="note">A program wrote this. Fill in what you mean its runs on this repository to use, and nothing else. You may leave fields empty and come back within the hour; each is taken once.</p>
<form method="post" accept-charset="utf-8" autocomplete="off">
{{range $i, $f := .Fields}}<fieldset><legend><bdi>{{server .Name}}</bdi>{{with .Environment}} for <bdi>{{.}}</bdi>{{end}}</legend>
{{if .Landed}}<p class="done">It has its value.</p>
{{else if eq .Kind "env_secret"}}<label for="f{{$i}}">Secret{{template "about" .}}</label>
<textarea id="f{{$i}}" name="fields.{{.Name}}" rows="3" maxlength="16384" autocomplete="off" autocapitalize="off" autocorrect="off" spellcheck="false"></textarea>
{{else if eq .Kind "service_url"}}<label for="f{{$i}}">Address{{template "about" .}}</label>
<input id="f{{$i}}" name="fields.{{.Name}}" type="url" inputmode="url" maxlength="2000" placeholder="https://" autocomplete="off" autocapitalize="off" spellcheck="false">
{{else if eq .Kind "mcp_server"}}<label for="u{{$i}}">Address of the MCP server{{template "about" .}}</label>
<input id="u{{$i}}" name="fields.{{.Name}}.url" type="url" inputmode="url" maxlength="2000" placeholder="https://" autocomplete="off" autocapitalize="off" spellcheck="false">
<label for="v{{$i}}">Transport</label><select id="v{{$i}}" name="fields.{{.Name}}.transport"><option value="http">Streamable HTTP</option><option value="sse">SSE</option></select>
<label for="w{{$i}}">Token</label><input id="w{{$i}}" name="fields.{{.Name}}.token" type="password" maxlength="16384" autocomplete="off">
{{else}}<p>This is a connection to make, not a value to fill in{{with .Description}}: <bdi>{{.}}</bdi>{{end}}. Make it, then answer the blocker.</p>
{{end}}</fieldset>
{{end}}<button>Keep what I filled in</button>
</form>{{else}}<p>There is nothing left to fill in for <bdi>{{.Repo}}</bdi>{{if eq .State "open"}}; the rest is answered on the list of blockers{{end}}. You can close this page.</p>{{end}}
</body></html>
{{end}}
{{define "failed"}}{{template "top" "This cannot go on"}}{{range .}}<p>{{.}}</p>
{{end}}</body></html>
{{end}}`))
