package mail

import (
	"fmt"
	"html/template"
	"strings"

	"yardmaster/internal/client/inert"
)

// Link is something to press.
type Link struct{ Label, URL string }

// Page is the content of a mail, of which Message makes a text and a twin in HTML.
type Page struct {
	Title string
	Lead  string // a sentence of ours
	Repo  string // owner/name; empty: none
	// Quote is text of others. It is shown as it is, and no program finds an address in it.
	Quote string
	Links []Link
	// Reason says why the person gets the mail.
	Reason string
}

// Message is the page as a mail to somebody.
func (p Page) Message(to, subject string) Message {
	return Message{To: to, Subject: Quiet(subject), Text: p.text(), HTML: p.html()}
}

func (p Page) text() string {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	say("%s\n", p.Lead)
	if p.Repo != "" {
		say("  %s", Quiet(p.Repo))
	}
	say("  %s\n", Quiet(p.Title))
	for line := range strings.Lines(p.Quote) {
		say("  | %s", Quiet(line))
	}
	if p.Quote != "" {
		say("")
	}
	for _, l := range p.Links {
		say("%s:\n%s\n", l.Label, l.URL)
	}
	say("-- \n%s", p.Reason)
	return b.String()
}

var pageOf = template.Must(template.New("").Funcs(template.FuncMap{"quiet": Quiet, "lines": strings.Lines}).Parse(
	`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">` +
		`<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark"><title>{{quiet .Title}}</title></head>` +
		`<body style="margin:0;padding:16px;font:16px/1.5 system-ui,sans-serif"><div style="max-width:36em">` +
		`<p>{{.Lead}}</p>{{with .Repo}}<p style="margin-bottom:0;opacity:.7">{{quiet .}}</p>{{end}}<h1 style="margin-top:0;font-size:20px">{{quiet .Title}}</h1>` +
		`{{with .Quote}}<blockquote style="margin:0 0 16px;padding-left:12px;border-left:3px solid #0b8a63">{{range lines .}}{{quiet .}}<br>{{end}}</blockquote>{{end}}` +
		`{{range .Links}}<p><a href="{{.URL}}" style="color:#0b8a63">{{.Label}}</a></p>{{end}}` +
		`<p style="margin-top:32px;font-size:13px;opacity:.7">{{.Reason}}</p></div></body></html>`))

func (p Page) html() string {
	var b strings.Builder
	if err := pageOf.Execute(&b, p); err != nil {
		panic(fmt.Sprintf("mail: the template of pages: %v", err)) // it has no data that can fail
	}
	return b.String()
}

// Quiet makes a text of others harmless in a mail: one line without hidden characters, in
// which no program finds an address to link to.
func Quiet(s string) string {
	return strings.NewReplacer("://", ": //", "www.", "www .", "WWW.", "WWW .", "Www.", "Www .", "mailto:", "mailto :").
		Replace(inert.Line(s))
}
