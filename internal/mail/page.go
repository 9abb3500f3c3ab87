package mail

import (
	_ "embed" // the templates of pages
	"fmt"
	"html"
	"net/url"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/lazy"
	"yardmaster/internal/stencil"
)

const (
	columns      = 72  // of the sentences in the text of a page
	subjectRunes = 250 // of a subject
)

// Link is something to press. It is left out of a mail if URL is no address of http or https.
type Link struct {
	Label, URL string
	// Main is the link that most people will want; of a page without, the first.
	Main bool
}

// Fact is a name and a value, such as a commit, on one line.
type Fact struct{ Name, Value string }

// List is a sentence of ours, and lines below it.
type List struct {
	Heading string
	Lines   []string
	More    int // how many lines are left out
}

// Page is the content of a mail, of which Message makes a text and a twin in HTML. Every
// field may hold text of others: the mail has no address but those of its links, and the
// text of a field stays where the field is.
type Page struct {
	Preheader string // what lists of mails show beside the subject; empty: the title, or else the lead
	Lead      string // a sentence of ours
	Code      string // to be copied
	Repo      string // owner/name; empty: none
	Title     string
	Facts     []Fact
	Quote     string // lines of others
	Lists     []List
	Links     []Link
	Notes     []string // paragraphs of ours after the links
	Reason    string   // why the person gets the mail; empty: nothing is said of it
}

// Message is the page as a mail to somebody.
func (p Page) Message(to, subject string) Message {
	subject = Short(Quiet(subject), subjectRunes)
	shown := struct {
		Page
		Subject string
	}{p, subject}
	if shown.Preheader == "" {
		if shown.Preheader = p.Title; p.Title == "" {
			shown.Preheader = p.Lead
		}
	}
	shown.Links = pressable(p.Links)
	m := Message{To: to, Subject: subject}
	var text, markup strings.Builder
	for _, made := range []struct {
		of  *stencil.Template
		out *strings.Builder
	}{{textOf(), &text}, {htmlOf(), &markup}} {
		if err := made.of.Execute(made.out, "page", shown); err != nil {
			panic(fmt.Sprintf("mail: the templates of pages: %v", err)) // they have no data that can fail
		}
	}
	m.Text, m.HTML = text.String(), markup.String()
	return m
}

// pressable is the links that lead somewhere, of which one is the main one.
func pressable(links []Link) []Link {
	var out []Link
	main := false
	for _, l := range links {
		u, err := url.Parse(l.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || inert.Line(l.URL) != l.URL ||
			!utf8.ValidString(l.URL) || strings.ContainsFunc(l.URL, unicode.IsSpace) {
			continue
		}
		main = main || l.Main
		out = append(out, l)
	}
	if len(out) > 0 && !main {
		out[0].Main = true
	}
	return out
}

var (
	//go:embed templates/page.txt
	textPage string
	//go:embed templates/page.html
	htmlPage string

	textOf = sync.OnceValue(func() *stencil.Template {
		return stencil.Must(stencil.New(stencil.Text, "page", textPage, stencil.Funcs{"quiet": Quiet, "wrap": wrap, "lines": lines}))
	})
	htmlOf = sync.OnceValue(func() *stencil.Template {
		return stencil.Must(stencil.New(stencil.Page, "page", htmlPage, stencil.Funcs{"quiet": Quiet, "soft": Soft, "lines": lines}))
	})
)

// wrap breaks a sentence into lines of at most columns characters, between words. A word
// that is longer has a line of its own.
func wrap(s string) []string {
	var out []string
	line, wide := "", 0
	for _, word := range strings.Fields(Quiet(s)) {
		n := utf8.RuneCountInString(word)
		if line != "" && wide+1+n > columns {
			out = append(out, line)
			line, wide = "", 0
		}
		if line != "" {
			line, wide = line+" ", wide+1
		}
		line, wide = line+word, wide+n
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }

// addresses are what programs make links of, in a text without hidden characters.
var addresses = lazy.New(`(?i)://|\bwww\.|\b(?:mailto|tel|sms|xmpp|sip|data|javascript):`)

// Quiet makes a text of others harmless in a mail: one line without hidden characters, in
// which no program finds an address to link to.
func Quiet(s string) string {
	return addresses.ReplaceAllStringFunc(inert.Line(strings.ToValidUTF8(s, "\uFFFD")), func(found string) string {
		if found == "://" {
			return ": //"
		}
		return found[:len(found)-1] + " " + found[len(found)-1:]
	})
}

// Soft is a quiet text as HTML. Dots and at signs within words are elements of their own,
// because some programs make links of everything that looks like a domain.
func Soft(s string) stencil.HTML {
	rest := []rune(Quiet(s))
	var b strings.Builder
	for i, r := range rest {
		if (r == '.' || r == '@') && i > 0 && i+1 < len(rest) && !unicode.IsSpace(rest[i-1]) && !unicode.IsSpace(rest[i+1]) {
			fmt.Fprintf(&b, "<span>%c</span>", r)
			continue
		}
		b.WriteString(html.EscapeString(string(r)))
	}
	return stencil.HTML(b.String())
}

// Short is a text of at most so many characters, the last of which is … if some are missing.
func Short(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
