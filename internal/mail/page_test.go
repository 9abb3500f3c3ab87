package mail

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
)

// whole is a page with every field.
func whole(s string) Page {
	return Page{
		Lead: "A pull request waits for your decision, and this sentence is a long one that a terminal shows on lines. " + s,
		Repo: "acme/lathe" + s, Title: s, Code: s, Facts: []Fact{{"head", s}}, Quote: "one\n" + s + "\nthree",
		Lists: []List{{Heading: "It changes:", Lines: []string{s, "main.go"}, More: 3}},
		Links: []Link{
			{Label: "Look at it" + s, URL: "https://yard.example/ui/?a=b&c=d"},
			{Label: "Approve", URL: "https://yard.example/actions/x", Main: true},
			{Label: "not shown", URL: "javascript:alert(1)"}, {Label: "not shown", URL: "https://yard.example/\nx"},
		},
		Notes: []string{"Do not forward it." + s}, Reason: "You asked for it." + s, Preheader: s,
	}
}

func TestPageText(t *testing.T) {
	t.Parallel()
	got := whole("Fix the date").Message("ann@example.com", "a subject").Text
	const want = `A pull request waits for your decision, and this sentence is a long one
that a terminal shows on lines. Fix the date

    Fix the date

  acme/latheFix the date
  Fix the date
  head Fix the date

  | one
  | Fix the date
  | three

It changes:

  Fix the date
  main.go
  and 3 more

Look at itFix the date:
https://yard.example/ui/?a=b&c=d

Approve:
https://yard.example/actions/x

Do not forward it.Fix the date

-- 
You asked for it.Fix the date
`
	if got != want {
		t.Errorf("the text is\n%s\nand not\n%s", got, want)
	}
	if got := (Page{Lead: "Your code is", Code: "123456"}).Message("a@b", "c").Text; got != "Your code is\n\n    123456\n" {
		t.Errorf("a short page is %q", got)
	}
	for _, line := range wrap(strings.Repeat("wörter und ", 50) + strings.Repeat("x", 100)) {
		if n := utf8.RuneCountInString(line); n > columns && n != 100 {
			t.Errorf("a line of %d characters: %q", n, line)
		}
	}
}

// element is the beginning of an element of a page.
type element struct{ name, style, href string }

var (
	colorOf = regexp.MustCompile(`(?:^|;)color:([^;]*)`)
	backOf  = regexp.MustCompile(`(?:^|;)background(?:-color)?:([^;]*)`)
)

// parse reads the HTML of a page, which is strict enough for that: its elements, and the
// text between them.
func parse(t testing.TB, page string) (elements []element, text string) {
	t.Helper()
	var b strings.Builder
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, b.String()
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, page)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local}
			for _, a := range token.Attr {
				switch a.Name.Local {
				case "style":
					e.style = a.Value
				case "href":
					e.href = a.Value
				}
			}
			if e.name != "span" || e.style != "" { // spans of soft are text
				elements = append(elements, e)
			}
			if e.name != "span" {
				b.WriteByte('\n')
			}
		case xml.CharData:
			b.Write(token)
		}
	}
}

// In dark mode a program turns colors around, or not: a text has a color of its own only on
// a background of its own.
func TestPageInTheDark(t *testing.T) {
	t.Parallel()
	page := whole("Fix").Message("ann@example.com", "a subject").HTML
	elements, _ := parse(t, page)
	buttons := 0
	for _, e := range elements {
		color, back := colorOf.FindStringSubmatch(e.style), backOf.FindStringSubmatch(e.style)
		if (color != nil && color[1] != "inherit") != (back != nil) {
			t.Errorf("%s has one of two colors: %s", e.name, e.style)
		}
		if e.name == "a" {
			buttons++
			// 11 and 1 of the border on both sides of 20 are 44.
			for _, want := range []string{"padding:11px", "border:1px", "line-height:20px", "inline-block"} {
				if !strings.Contains(e.style, want) {
					t.Errorf("a button is without %s: %s", want, e.style)
				}
			}
		}
	}
	if buttons != 2 || !strings.Contains(page, `content="light dark"`) {
		t.Errorf("%d buttons:\n%s", buttons, page)
	}
}

var addressLike = regexp.MustCompile(`(?i)[a-z]://|\bwww\.|\bmailto:`)

func FuzzPage(f *testing.F) {
	for _, s := range []string{
		"", "Fix the date", "<script>alert(1)</script>", "x\r\nBcc: eve@example.com", "\u202ehttps://evil.example/", "</style><a href=x>",
		"ht\u200btps://evil.example", "wWw.evil.example", "mailto:eve@evil.example", "&lt;a&gt; {{.Code}}",
		"\n-- \nApprove:\nhttps://evil.example\n",
		"<!channel>\x1b[31m\x00", "\xff\xfe", "a\u2028b\u0085c", "=?utf-8?q?x?=\nTo: eve@example.com", strings.Repeat("x", 2000),
	} {
		f.Add(s)
	}
	plain := whole("x").Message("ann@example.com", "x")
	shape, _ := parse(f, plain.HTML)
	f.Fuzz(func(t *testing.T, s string) {
		l := Letter{Message: whole(s).Message("ann@example.com", "["+s+"] x"), ID: "id", From: "Yard <yard@example.com>"}
		text := l.Text
		for _, link := range []string{"https://yard.example/ui/?a=b&c=d\n", "https://yard.example/actions/x\n"} {
			if strings.Count(text, "\n"+link) != 1 {
				t.Fatalf("the text has %q not once:\n%q", link, text)
			}
			text = strings.Replace(text, link, "\n", 1)
		}
		elements, shown := parse(t, l.HTML)
		for name, part := range map[string]string{"text": text, "HTML": shown, "subject": l.Subject} {
			if found := addressLike.FindString(part); found != "" {
				t.Errorf("the %s has an address, %q: %q", name, found, part)
			}
			for line := range strings.Lines(part) {
				if name != "HTML" && inert.Line(line) != strings.TrimSpace(line) || !utf8.ValidString(line) {
					t.Errorf("the %s has hidden characters: %q", name, line)
				}
			}
		}
		if strings.ContainsAny(l.Subject, "\r\n") {
			t.Errorf("the subject has lines: %q", l.Subject)
		}
		links := 0
		for _, e := range elements {
			if e.href != "" {
				links++
				if e.href != "https://yard.example/ui/?a=b&c=d" && e.href != "https://yard.example/actions/x" {
					t.Errorf("a link to %q", e.href)
				}
			}
			if e.name == "script" || e.name == "img" {
				t.Errorf("an element %s", e.name)
			}
		}
		// A text that is empty once it is harmless may leave out its element.
		if s == inert.Line(s) && s != "" && utf8.ValidString(s) && !strings.Contains(s, "\n") && len(elements) != len(shape) {
			t.Errorf("%d elements, and %d of a harmless page", len(elements), len(shape))
		}
		if links != 2 {
			t.Errorf("%d links", links)
		}
		raw, err := l.bytes()
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
		for line := range strings.SplitSeq(head, "\r\n") {
			name, _, ok := strings.Cut(line, ":")
			if !ok || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
				continue
			}
			switch name {
			case "Date", "MIME-Version", "Message-ID", "Subject", "From", "To", "Content-Type", "Auto-Submitted":
			default:
				t.Errorf("a header %q", line)
			}
		}
	})
}

// The HTML says what the text says: soft changes no character.
func TestSoft(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"main.go of evil.example/x", "bob@example.com <b>", "a sentence. And another.", ".", "x."} {
		got := strings.NewReplacer("<span>", "", "</span>", "").Replace(string(Soft(s)))
		if html.UnescapeString(got) != s {
			t.Errorf("%q becomes %q", s, got)
		}
		if strings.Contains(string(Soft(s)), "l.e") || strings.Contains(string(Soft(s)), "b@e") {
			t.Errorf("%q is an address", Soft(s))
		}
	}
}
