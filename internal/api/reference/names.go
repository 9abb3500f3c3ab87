package reference

import (
	"html"
	"slices"
	"strings"

	"yardmaster/internal/lazy"
	"yardmaster/internal/stencil"
)

// namer finds the names in a text: operations, headers, paths, files and hosts, and
// members and values with an underscore or an inner capital.
type namer struct {
	ops, headers, members map[string]bool
}

// plainHeaders are headers that texts mention and no operation lists.
var plainHeaders = []string{
	"Authorization", "Cache-Control", "Content-Type", "ETag", "Mcp-Session-Id", "Origin", "User-Agent", "X-Svc-Account",
}

var (
	word       = lazy.New(`\S+`)
	methods    = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	headerSays = []string{"Bearer", "no-store", "true"} // words that may follow the colon after a header
	pathLike   = lazy.New(`^/[A-Za-z0-9._~{}<>/-]*[A-Za-z0-9}>]$`)
	nameLike   = lazy.New(`^[A-Za-z$][A-Za-z0-9_.:=<>{}/*…-]*$`)
	pair       = lazy.New(`^[a-z][a-z_]*(?::[a-z<][a-z_<>]*)+$`)
	dotted     = lazy.New(`^(?:\*\.|\.)?[a-z][a-z-]+(?:[./][a-z-]+)*\.[a-z][a-z-]+$`)
	assignment = lazy.New(`^[a-z][a-z0-9]*=[^=]+$`)
	mediaType  = lazy.New(`^(?:application|text)/[a-z0-9.+-]+$`)
)

func (d *document) namer(ops []*operation) *namer {
	n := &namer{ops: map[string]bool{}, headers: map[string]bool{}, members: map[string]bool{}}
	for _, name := range plainHeaders {
		n.headers[name] = true
	}
	for name := range d.Components.Headers {
		n.headers[name] = n.headers[name] || strings.Contains(name, "-")
	}
	for _, x := range ops {
		n.ops[x.ID] = true
		for _, p := range x.Parameters {
			if p.In == "header" {
				n.headers[p.Name] = true
			} else {
				n.members[p.Name] = true
			}
		}
	}
	for _, s := range d.Components.Schemas {
		for name := range s.Properties {
			n.members[name] = true
		}
	}
	return n
}

// names tells whether a word is a name.
func (n *namer) names(s string) bool {
	switch {
	case n.ops[s] || n.headers[s] || pathLike.MatchString(s) || assignment.MatchString(s) || mediaType.MatchString(s) ||
		pair.MatchString(s) || dotted.MatchString(s):
		return true
	case !nameLike.MatchString(s):
		return false
	case strings.Contains(s, "_") || strings.Contains(s, "<"):
		return true
	}
	return n.members[s] && strings.ToLower(s[1:]) != s[1:]
}

// prose marks the text between backticks, and names outside of them.
func (n *namer) prose(text string) stencil.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString("<code>" + html.EscapeString(part) + "</code>")
		} else {
			n.mark(&b, part)
		}
	}
	return stencil.HTML(b.String())
}

// mark writes a text and marks its names; names of operations become links.
func (n *namer) mark(b *strings.Builder, text string) {
	at := 0 // position of the first byte that is not written
	all := word.FindAllStringIndex(text, -1)
	for i := 0; i < len(all); i++ {
		from, to := bare(text, all[i])
		name := text[from:to]
		if i+1 < len(all) {
			next, end := bare(text, all[i+1])
			follows := text[next:end]
			switch {
			case slices.Contains(methods, name) && pathLike.MatchString(follows),
				n.headers[name] && text[to:next] == ": " && slices.Contains(headerSays, follows):
				to, name = end, text[from:end]
				i++
			}
		}
		first, _, _ := strings.Cut(name, " ")
		known := n.names(strings.TrimSuffix(first, ":")) || slices.Contains(methods, first)
		if !known || first == name && slices.Contains(methods, name) {
			continue
		}
		b.WriteString(html.EscapeString(text[at:from]))
		code := "<code>" + html.EscapeString(name) + "</code>"
		if n.ops[name] {
			code = `<a href="#` + html.EscapeString(name) + `">` + code + "</a>"
		}
		b.WriteString(code)
		at = to
	}
	b.WriteString(html.EscapeString(text[at:]))
}

// bare returns the position of a word without the punctuation around it.
func bare(text string, at []int) (from, to int) {
	from, to = at[0], at[1]
	for from < to && strings.IndexByte(`("'[`, text[from]) >= 0 {
		from++
	}
	to = from + len(strings.TrimSuffix(strings.TrimRight(text[from:to], `.,;:)"'!?]`), "'s"))
	return from, to
}
