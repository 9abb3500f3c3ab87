package queue

import (
	"regexp"
	"strings"
)

// globs are paths that a task is expected to touch: files, folders, or
// patterns, in which * and ? stand for parts of one name and ** for any folders.
type globs struct {
	all      []string
	patterns []*regexp.Regexp // nil for a plain path
}

func compile(all []string) globs {
	g := globs{all: all, patterns: make([]*regexp.Regexp, len(all))}
	for i, p := range all {
		if !strings.ContainsAny(p, "*?") {
			continue
		}
		var b strings.Builder
		for rest := p; rest != ""; {
			switch {
			case strings.HasPrefix(rest, "**/"):
				b.WriteString("(?:.*/)?")
				rest = rest[3:]
			case strings.HasPrefix(rest, "**"):
				b.WriteString(".*")
				rest = rest[2:]
			case rest[0] == '*':
				b.WriteString("[^/]*")
				rest = rest[1:]
			case rest[0] == '?':
				b.WriteString("[^/]")
				rest = rest[1:]
			default:
				n := strings.IndexAny(rest+"*", "*?")
				b.WriteString(regexp.QuoteMeta(rest[:n]))
				rest = rest[n:]
			}
		}
		g.patterns[i] = regexp.MustCompile("^" + b.String() + "(?:/.*)?$")
	}
	return g
}

// overlap lists the paths out of other, which may be patterns as well, that g may
// contain.
func (g globs) overlap(other []string) (out []string) {
	for _, o := range other {
		for i := range g.all {
			if g.meets(i, o) {
				out = append(out, o)
				break
			}
		}
	}
	return out
}

func (g globs) meets(i int, o string) bool {
	mine, theirs := fixed(g.all[i]), fixed(o)
	switch plain := g.patterns[i] == nil; {
	case theirs != o && !plain:
		// Two patterns may meet unless their fixed beginnings differ.
		return strings.HasPrefix(mine, theirs) || strings.HasPrefix(theirs, mine)
	case theirs != o:
		return compile([]string{o}).meets(0, g.all[i])
	case plain:
		a, b := strings.TrimSuffix(g.all[i], "/"), strings.TrimSuffix(o, "/")
		return a == b || strings.HasPrefix(b, a+"/") || strings.HasPrefix(a, b+"/")
	}
	return g.patterns[i].MatchString(o)
}

// fixed returns the part of a pattern before its first * or ?.
func fixed(p string) string {
	if i := strings.IndexAny(p, "*?"); i >= 0 {
		return p[:i]
	}
	return p
}
