package codehost

import (
	"strings"
	"unicode"

	"yardmaster/internal/lazy"
)

var itemLink = lazy.New(`(?i)<?https?://[^\s/]+/[^\s/]+/[^\s/]+/` +
	`(?:-/)?(?:issues?|pulls?|pull-requests?|merge_requests)/\d+[^\s>)\]]*>?|\b[\w.-]+/[\w.-]+#\d+|#\d+`)

// OnlyLinks tells whether a problem consists of links to issues or pull requests of
// a code host, and nothing else.
func OnlyLinks(problem string) bool {
	if !strings.Contains(problem, "://") && !strings.Contains(problem, "#") {
		return false
	}
	rest := itemLink.ReplaceAllString(problem, " ")
	return rest != problem && !strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
