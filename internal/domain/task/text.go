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

var secretShapes = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`\bdev_(?:pat|run|enr|att|set)_\w+`),
	regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abpr]-|sk-|sk_live_|rk_live_|AIza|ya29\.|npm_)[\w-]{12,}`),
	regexp.MustCompile(`\bA(?:KIA|SIA)[0-9A-Z]{16}\b`),
	regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`),
}

var (
	urlPassword = regexp.MustCompile(`(://[^\s:/@]+:)[^\s@/]+@`)
	assigned    = regexp.MustCompile(`(?i)\b((?:password|passwd|secret|token|api[_-]?key|authorization)["']?\s*[:=]\s*["']?(?:bearer\s+)?)[^\s"']{6,}`)
)

const redacted = "[redacted]"

// scrub replaces what looks like a secret. It is a net under people, not a
// promise: secrets belong into the vault.
func scrub(s string) string {
	for _, re := range secretShapes {
		s = re.ReplaceAllLiteralString(s, redacted)
	}
	s = urlPassword.ReplaceAllString(s, "${1}"+redacted+"@")
	return assigned.ReplaceAllString(s, "${1}"+redacted)
}
