package kb

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// mostLinks is how many links a page may have in its text.
const mostLinks = 2000

// reference is a link in the text of a page to a page or a file of its repository.
type reference struct {
	text  string   // as it is written
	pages []string // the slugs that it may mean, the likeliest first; none: it leads nowhere
	files []string // the paths that it may mean
}

// references are the links in a Markdown text to pages and files, each once. Links to other
// sites are none, nor are links inside of code.
func references(slug, body string) []reference {
	var out []reference
	seen := map[string]bool{}
	add := func(dest string) {
		if dest = strings.TrimSpace(dest); dest == "" || seen[dest] || len(out) > mostLinks {
			return
		}
		seen[dest] = true
		if r, ours := referenceOf(slug, dest); ours {
			out = append(out, r)
		}
	}
	fence := ""
	for line := range strings.Lines(body) {
		mark := strings.TrimLeft(line, " ")
		if fence != "" {
			if strings.HasPrefix(mark, fence) && strings.Trim(strings.TrimSpace(mark), fence[:1]) == "" {
				fence = ""
			}
			continue
		}
		if n := len(mark) - len(strings.TrimLeft(mark, "`")); n >= 3 {
			fence = mark[:n]
			continue
		}
		if n := len(mark) - len(strings.TrimLeft(mark, "~")); n >= 3 {
			fence = mark[:n]
			continue
		}
		lineLinks(withoutCode(line), add)
	}
	return out
}

// withoutCode is a line without its code spans.
func withoutCode(line string) string {
	if !strings.Contains(line, "`") {
		return line
	}
	var b strings.Builder
	for line != "" {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			break
		}
		b.WriteString(line[:i])
		n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
		ticks, rest := line[i:i+n], line[i+n:]
		end := strings.Index(rest, ticks)
		if end < 0 {
			line = rest // nothing ends it: they are plain signs
			continue
		}
		line = rest[end+n:]
	}
	return b.String() + line
}

// lineLinks calls add with the destinations in a line: [text](destination), [[slug]],
// [[slug|text]] and [label]: destination.
func lineLinks(line string, add func(string)) {
	for rest := line; ; {
		i := strings.Index(rest, "[[")
		if i < 0 {
			break
		}
		rest = rest[i+2:]
		end := strings.Index(rest, "]]")
		if end < 0 {
			break
		}
		target, _, _ := strings.Cut(rest[:end], "|")
		if target = strings.TrimSpace(target); target != "" && !strings.ContainsAny(target, " \t[]()") {
			add("/" + strings.TrimPrefix(target, "/"))
		}
		rest = rest[end+2:]
	}
	for rest := line; ; {
		i := strings.Index(rest, "](")
		if i < 0 {
			break
		}
		rest = rest[i+2:]
		add(destination(rest))
	}
	if t := strings.TrimLeft(line, " "); strings.HasPrefix(t, "[") && !strings.HasPrefix(t, "[^") {
		if label, dest, ok := strings.Cut(t, "]:"); ok && !strings.ContainsAny(label[1:], "[]") {
			add(destination(strings.TrimSpace(dest)))
		}
	}
}

// destination is the destination at the beginning of a text.
func destination(s string) string {
	s = strings.TrimLeft(s, " ")
	if inner, ok := strings.CutPrefix(s, "<"); ok {
		dest, _, _ := strings.Cut(inner, ">")
		return dest
	}
	depth := 0
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth == 0, r <= ' ':
			return s[:i]
		case r == ')':
			depth--
		}
	}
	return s
}

// referenceOf reads a destination as it stands in the text of a page; ours is false for
// another site and for a place in the page itself.
func referenceOf(slug, dest string) (r reference, ours bool) {
	r.text = dest
	if strings.HasPrefix(dest, "#") {
		return r, false
	}
	lower := strings.ToLower(dest)
	for _, scheme := range []string{"https://", "http://", "mailto:"} {
		if strings.HasPrefix(lower, scheme) {
			return r, false
		}
	}
	to := dest
	if i := strings.IndexAny(to, "#?"); i >= 0 {
		to = to[:i]
	}
	if plain, err := url.PathUnescape(to); err == nil {
		to = plain
	}
	if i := strings.LastIndexByte(to, ':'); i >= 0 && strings.Trim(to[i+1:], "0123456789-") == "" {
		to = to[:i] // a line of a file
	}
	if to == "" || strings.HasPrefix(to, "//") || strings.Contains(to, ":") {
		return r, true // another scheme, such as javascript: it leads nowhere
	}
	var paths []string
	if !strings.HasPrefix(to, "/") {
		paths = append(paths, path.Join("/", path.Dir(slug), to))
	}
	paths = append(paths, path.Join("/", to))
	for _, p := range paths {
		p = strings.TrimPrefix(p, "/")
		if p == "" {
			continue
		}
		r.files = append(r.files, p)
		for _, s := range []string{p, strings.TrimSuffix(p, ".md")} {
			if len(s) <= mostSlug && !slices.Contains(r.pages, s) {
				r.pages = append(r.pages, s)
			}
		}
	}
	return r, true
}
