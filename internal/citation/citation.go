// Package citation is about sentences that point to lines of a repository.
//
// Check drops a sentence whose lines lack its names, quotes and numbers, or do not define what
// it is about. What it keeps is not proved by that: a sentence turned round has the same words.
//
// The package knows no repository: its callers open the lines.
//
// A Mark finds the lines of a sentence again in a later commit, or says that they are stale.
//
//   - citation.go: places
//   - move.go: marks
//   - check.go: the rules; defined.go: where a name is introduced; words.go: words and numbers
package citation

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Place is some lines of a file, both ends in, from 1.
type Place struct {
	Path     string
	From, To int
}

// maxPath is the longest path of a Place, in bytes.
const maxPath = 1000

// Parse reads path:line or path:line-line. The path is one of a tree: clean, relative, and not
// above its root.
func Parse(s string) (p Place, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || i > maxPath {
		return p, false
	}
	from, to, ranged := strings.Cut(s[i+1:], "-")
	if !ranged {
		to = from
	}
	p.Path = s[:i]
	var err1, err2 error
	p.From, err1 = strconv.Atoi(from)
	p.To, err2 = strconv.Atoi(to)
	clean := path.Clean(p.Path)
	ok = err1 == nil && err2 == nil && p.From > 0 && p.To >= p.From && clean == p.Path && !path.IsAbs(clean) && clean != "." &&
		clean != ".." && !strings.HasPrefix(clean, "../") && !strings.ContainsAny(clean, "\x00\n")
	return p, ok
}

// String is path:line or path:line-line.
func (p Place) String() string {
	if p.From == p.To {
		return fmt.Sprintf("%s:%d", p.Path, p.From)
	}
	return fmt.Sprintf("%s:%d-%d", p.Path, p.From, p.To)
}
