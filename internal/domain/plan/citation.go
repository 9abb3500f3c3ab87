package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/lazy"
)

// citation is a place in a repository.
type citation struct {
	path     string
	from, to int // lines, from 1
}

// parseCitation reads path:line or path:line-line. ok is false for any other
// text.
func parseCitation(text string) (c citation, ok bool) {
	path, lines, ok := cutLast(text, ":")
	if !ok || !plainPath(path) {
		return c, false
	}
	first, last, isRange := strings.Cut(lines, "-")
	c.path = path
	if c.from, ok = lineNumber(first); !ok {
		return citation{}, false
	}
	if c.to = c.from; isRange {
		if c.to, ok = lineNumber(last); !ok || c.to < c.from {
			return citation{}, false
		}
	}
	return c, true
}

func (c citation) String() string {
	if c.to > c.from {
		return fmt.Sprintf("%s:%d-%d", c.path, c.from, c.to)
	}
	return fmt.Sprintf("%s:%d", c.path, c.from)
}

func lineNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0 && n < 10_000_000 && s == strconv.Itoa(n)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// cited finds citations in prose: a path with a dot or a slash in it, or a name
// like README, and a line. Addresses of the web do not match.
var cited = lazy.New("(^|[\\s(\\[`'\"*,;])((?:[\\w.@+-]+/)*(?:[\\w@+-]*\\.[\\w.@+-]*\\w|[A-Z]\\w+)|(?:[\\w.@+-]+/)+[\\w.@+-]+):(\\d+(?:-\\d+)?)\\b")

// claim is one line of a report that cites a place.
type claim struct {
	text  string
	key   string // equal for claims that say the same; "" if the line says nothing
	cites []citation
}

var (
	bullet = lazy.New(`^(?:[-*+>#]+|\d+[.)])\s+`)
	empty  = lazy.New("\\([\\s,;]*\\)|\\[[\\s,;]*\\]|`[\\s,;]*`|\\*{4}")
)

// claims reads the lines of a report that cite a place.
func claims(report string) []claim {
	var out []claim
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		var c claim
		// Neighbouring citations share the character between them, so each
		// search begins behind the citation before.
		rest, text := line, strings.Builder{}
		for {
			m := cited.FindStringSubmatchIndex(rest)
			if m == nil {
				break
			}
			text.WriteString(rest[:m[3]])
			if at, ok := parseCitation(rest[m[4]:m[7]]); ok {
				if !slices.Contains(c.cites, at) {
					c.cites = append(c.cites, at)
				}
			} else {
				text.WriteString(rest[m[4]:m[7]])
			}
			rest = rest[m[7]:]
		}
		if len(c.cites) == 0 {
			continue
		}
		text.WriteString(rest)
		c.text = tidy(text.String())
		c.key = keyOf(c.text)
		out = append(out, c)
	}
	return out
}

func keyOf(text string) string { return strings.ToLower(strings.Trim(text, " .,;:!")) }

// tidy removes the marks that citations leave behind in a line.
func tidy(s string) string {
	s = bullet.ReplaceAllString(strings.TrimSpace(s), "")
	for {
		t := empty.ReplaceAllString(s, " ")
		if t == s {
			break
		}
		s = t
	}
	s = strings.Join(strings.Fields(s), " ")
	s = strings.NewReplacer(" .", ".", " ,", ",", " ;", ";").Replace(s)
	return strings.TrimSpace(strings.TrimRight(s, " ,;:-"))
}

// documentsIn reads the documents of a plan out of a scout's report, by name.
// Each is the content of a fence whose opening line is "```plan <file>", of
// three or more backticks or tildes, closed by at least as many.
func documentsIn(report string) map[string][]byte {
	files := map[string][]byte{}
	var name, fence string
	var body strings.Builder
	for line := range strings.Lines(report) {
		bare := strings.TrimSpace(line)
		mark := fenceOf(bare)
		switch {
		case fence == "" && mark != "":
			fence = mark
			body.Reset()
			name = ""
			if word, file, ok := strings.Cut(strings.TrimSpace(bare[len(mark):]), " "); ok && word == "plan" {
				name = strings.TrimSpace(file)
			}
		case fence != "" && bare == mark && mark != "" && mark[0] == fence[0] && len(mark) >= len(fence):
			if name != "" {
				files[name] = []byte(body.String())
			}
			fence = ""
		case fence != "":
			body.WriteString(line)
		}
	}
	return files
}

// fenceOf returns the backticks or tildes that a line begins with, or "" if
// there are fewer than three.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// Grounded counts the lines of a report that cite a place, n, among those that claim something, d:
// the items of its lists, and every line that cites.
func Grounded(report string) (n, d int64) {
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		cites := len(claims(line)) > 0
		if cites {
			n++
		}
		if cites || bullet.MatchString(line) && !strings.HasPrefix(line, "#") {
			d++
		}
	}
	return n, d
}
