package blocker

import (
	"context"
	"maps"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
	"yardmaster/internal/stencil"
	"yardmaster/internal/web"
)

// FixLink is the actor of the token of a fix link, who may see and fill in one form.
// It returns false for another token and for an expired link.
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

// actorOf is the actor of a fix link.
func actorOf(l seal.Link) policy.Actor {
	return policy.Actor{Credential: policy.FixLink, CredentialID: l.Subject, AccountID: l.Account, ExpiresAt: l.Expires}
}

// errLinkExpired is the refusal of a link that has expired or whose blocker is closed.
var errLinkExpired = fault.New(fault.Gone, "fix-link-expired",
	"This link has expired, or its form is closed. Whoever may write secrets finds a new one on the list of blockers.")

// visit reads a fix link and returns a context with its actor. It fails with
// fault.Invalid if the link is not signed by this server.
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
	JWT string `json:"jwt"`
}

// view is the data of the page.
type view struct {
	Spec
	Landed  []string
	Stanzas []MCPStanza
	Failure string            // tells that some values were not stored
	Refused map[string]string // the reasons, by the name of the field
	Typed   map[string]string // the values of the form before, without secrets
}

// open tells whether a field can be filled in.
func (v view) open() bool {
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
		return op.Reply{}, err
	}
	var v view
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, l.Subject)
		if fault.IsKind(err, fault.NotFound) || err == nil && (r.State != Open || !tx.Now.Before(l.Expires)) {
			return errLinkExpired
		}
		if err == nil {
			v.Spec, err = s.specOf(tx, &r)
		}
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	return render(ctx, 200, v)
}

type redeemIn struct {
	JWT    string            `json:"jwt"`
	Accept string            `header:"Accept"`
	Fields map[string]string `json:"fields,omitempty" maxItems:"100" doc:"by the name of the field; mcp:<server> has mcp:<server>.url, .transport and .token"`
}

func (s *Service) redeem(ctx context.Context, in redeemIn) (op.Reply, error) {
	ctx, l, err := s.visit(ctx, in.JWT)
	if err != nil {
		return op.Reply{}, err
	}
	values, refused := entries(in.Fields), map[string]string{}
	v, err := s.submitPage(ctx, l, values)
	first := fault.From(err)
	for err != nil && op.PrefersPage(in.Accept) && refuse(fault.From(err), values, refused) {
		// Nothing is stored yet. The valid values are stored without the others, so that
		// nobody has to type them again.
		if len(values) == 0 {
			break
		}
		v, err = s.submitPage(ctx, l, values)
	}
	if len(refused) == 0 && fault.IsKind(err, fault.Invalid) && op.PrefersPage(in.Accept) {
		v.Failure = "Nothing was kept: " + strings.ReplaceAll(web.OneLine(first), "fields.", "")
		return s.formAgain(ctx, l.Subject, in.Fields, first.Kind.Status(), v)
	}
	if err != nil && (len(refused) == 0 || len(values) > 0) {
		return op.Reply{}, err
	}
	if len(refused) > 0 {
		v.Refused, v.Failure = refused, "Nothing was kept."
		if len(v.Landed) > 0 {
			v.Failure = "Not all of it was kept."
		}
		return s.formAgain(ctx, l.Subject, in.Fields, first.Kind.Status(), v)
	}
	return render(ctx, 200, v)
}

// submitPage stores the values of the page, all of them or none. It fails with
// errLinkExpired and as fillIn does.
func (s *Service) submitPage(ctx context.Context, l seal.Link, values map[string]entry) (v view, err error) {
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
		out, err := s.fillIn(tx, &r, values)
		if err != nil {
			return err
		}
		v.Landed, v.Stanzas = out.Landed, out.Stanzas
		v.Spec, err = s.specOf(tx, &r)
		return err
	})
	if err != nil {
		v = view{}
	}
	return v, err
}

// refuse moves the fields that a fault names from values to refused, with the
// reasons. It returns false if the fault names none of them.
func refuse(f *fault.Error, values map[string]entry, refused map[string]string) bool {
	before := len(refused)
	move := func(name, why string) {
		if _, typed := values[name]; typed {
			delete(values, name)
			refused[name] = why
		}
	}
	for path, why := range f.Fields {
		if name, is := strings.CutPrefix(path, "fields."); is && f.Kind == fault.Unprocessable {
			move(name, strings.Join(why, ", "))
		}
	}
	if name, is := f.Extra["field"].(string); is && f.Kind == fault.Conflict {
		move(name, "has its value already")
	}
	return len(refused) > before
}

// formAgain answers the form with its mistakes and with the values before, without
// secrets.
func (s *Service) formAgain(
	ctx context.Context, blocker string, fields map[string]string, status int, v view,
) (op.Reply, error) {
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, blocker)
		if err == nil {
			v.Spec, err = s.specOf(tx, &r)
		}
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	v.Typed = map[string]string{}
	for _, field := range v.Fields {
		switch field.Kind {
		case ServiceURL:
			v.Typed[field.Name] = harmless(fields[field.Name])
		case MCPServer:
			v.Typed[field.Name+".url"] = harmless(fields[field.Name+".url"])
			v.Typed[field.Name+".transport"] = fields[field.Name+".transport"]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Refused)) {
		// A form that is closed shows no fields.
		if !v.open() || !slices.ContainsFunc(v.Fields, func(f FormField) bool { return f.Name == name }) {
			v.Failure += " " + name + " " + v.Refused[name] + "."
		}
	}
	return render(ctx, status, v)
}

// harmless is the address, or empty if it may hold a password.
func harmless(address string) string {
	if strings.ContainsAny(address, "@?#") {
		return ""
	}
	return address
}

// entries reads the values of a form. It leaves out empty fields.
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

// render answers the page.
func render(ctx context.Context, status int, v view) (op.Reply, error) {
	r, err := web.Render(ctx, pages, status, "form", v, "")
	if err == nil {
		r.Header["Referrer-Policy"] = "no-referrer" // the address is the credential
	}
	return r, err
}

// Patterns of addresses for browsers. They accept at least all that entryFault does.
const (
	addressPattern = `\s*[A-Za-z][A-Za-z0-9+.\-]*://[^\/?#].*`
	httpsPattern   = `\s*[Hh][Tt][Tt][Pp][Ss]://[^\/?#].*`
)

var pages = web.Templates(`
{{define "about"}}<small>{{with .Description}}<bdi>{{.}}</bdi>{{end}}{{if .Replaces}} <strong>The vault has a value by this name; yours replaces it.</strong>{{end}}</small>{{end}}
{{define "refused"}}{{with .}}<p role="alert">This was not kept: {{said .}}.</p>
{{end}}{{end}}
{{define "form"}}{{if open .}}{{template "wide" "An agent needs something of you"}}{{else}}{{template "wide" "Thank you"}}{{end}}
{{with .Failure}}<p role="alert"><bdi>{{.}}</bdi></p>
{{end}}{{with .Landed}}<p class="done" role="status">Kept: {{range $i, $n := .}}{{if $i}}, {{end}}<bdi>{{$n}}</bdi>{{end}}. It cannot be read back.</p>
{{end}}{{range .Stanzas}}<h2>For the policy file</h2>
<p>Add this to <code>.svc/policy.yml</code> of <bdi>{{$.Repo}}</bdi>:</p>
<pre>{{.YAML}}</pre>
{{end}}{{if open .}}<p>It works on <strong><bdi>{{.Repo}}</bdi></strong> and cannot go on. In its own words:</p>
<blockquote><bdi>{{.Question}}</bdi></blockquote>
<p class="note">A program wrote this. Fill in what you mean its runs on this repository to use, and nothing else. You may leave fields empty and come back within the hour; each is taken once.</p>
<form method="post" accept-charset="utf-8" autocomplete="off">
{{range $i, $f := .Fields}}<fieldset><legend><bdi>{{server .Name}}</bdi>{{with .Environment}} for <bdi>{{.}}</bdi>{{end}}</legend>
{{template "refused" index $.Refused .Name}}{{if .Landed}}<p class="done">It has its value.</p>
{{else if eq .Kind "env_secret"}}<label for="f{{$i}}">Secret{{template "about" .}}</label>
<textarea class="secret" id="f{{$i}}" name="fields.{{.Name}}" rows="3" maxlength="16384" autocomplete="off" autocapitalize="off" autocorrect="off" spellcheck="false"></textarea>
{{else if eq .Kind "service_url"}}<label for="f{{$i}}">Address{{template "about" .}}</label>
<input id="f{{$i}}" name="fields.{{.Name}}" value="{{index $.Typed .Name}}" type="url" pattern="`+addressPattern+
	`" title="an address with a scheme and a host" inputmode="url" maxlength="2000" placeholder="https://" autocomplete="off" autocapitalize="off" spellcheck="false">
{{else if eq .Kind "mcp_server"}}<label for="u{{$i}}">Address of the MCP server{{template "about" .}}</label>
<input id="u{{$i}}" name="fields.{{.Name}}.url" value="{{index $.Typed (print .Name ".url")}}" type="url" pattern="`+httpsPattern+
	`" title="an https address" inputmode="url" maxlength="2000" placeholder="https://" autocomplete="off" autocapitalize="off" spellcheck="false">
<label for="v{{$i}}">Transport</label><select id="v{{$i}}" name="fields.{{.Name}}.transport"><option value="http">Streamable HTTP</option><option value="sse"{{if eq (index $.Typed (print .Name ".transport")) "sse"}} selected{{end}}>SSE</option></select>
<label for="w{{$i}}">Token</label><input id="w{{$i}}" name="fields.{{.Name}}.token" type="password" maxlength="16384" autocomplete="off">
{{else}}<p>This is a connection to make, not a value to fill in{{with .Description}}: <bdi>{{.}}</bdi>{{end}}. Make it, then answer the blocker.</p>
{{end}}</fieldset>
{{end}}<button class="main">Save</button>
</form>{{else}}<p>There is nothing left to fill in for <bdi>{{.Repo}}</bdi>{{if eq .State "open"}}; the rest is answered on the list of blockers{{end}}. You can close this page.</p>{{end}}{{template "end"}}{{end}}`,
	stencil.Funcs{
		"server": func(name string) string { return strings.TrimPrefix(name, mcpPrefix) }, "said": sentence, "open": view.open,
	})

// sentence is the reason of a refusal in the form that follows a colon: with a
// subject, unless the reason is a sentence of its own.
func sentence(why string) string {
	why = strings.TrimSuffix(why, ".")
	switch first, _, _ := strings.Cut(why, " "); {
	case first == "url" || first == "transport":
		return "its " + why
	case first == strings.ToLower(first):
		return "it " + why
	}
	return why
}
