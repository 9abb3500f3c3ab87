package task

import (
	"regexp"
	"strings"
	"unicode"
)

var itemLink = regexp.MustCompile(`(?i)<?https?://[^\s/]+/[^\s/]+/[^\s/]+/(?:-/)?(?:issues?|pulls?|pull-requests?|merge_requests)/\d+[^\s>)\]]*>?|\b[\w.-]+/[\w.-]+#\d+|#\d+`)

// onlyLinks tells whether a problem says nothing but links to issues or pull
// requests of a code host.
func onlyLinks(problem string) bool {
	if !strings.Contains(problem, "://") && !strings.Contains(problem, "#") {
		return false
	}
	rest := itemLink.ReplaceAllString(problem, " ")
	return rest != problem && !strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

const slugLength = 40

// branchName is svc/<slug>--<first 8 hex of the id>.
func branchName(title, id string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == slugLength {
			break
		}
	}
	slug := strings.Trim(b.String(), "-")
	if slug == "" {
		slug = "task"
	}
	return "svc/" + slug + "--" + id[:8]
}
