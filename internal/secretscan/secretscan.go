// Package secretscan tells text that looks like a secret. It is a net under people,
// not a promise: it knows the shapes that vendors give their keys (rules.tsv),
// what follows words such as password, and strings too random to be prose. Where plain text
// is stored for everybody to read, Found refuses it; where text has to go on,
// Scrub takes the secret out.
package secretscan

import (
	"regexp"
	"strings"
	"unicode"
)

// Mark is what stands where a secret was.
const Mark = "[redacted]"

var (
	urlPassword = regexp.MustCompile(`(://[^\s:/@]+:)[^\s@/]+@`)
	assigned    = regexp.MustCompile(`(?i)\b((?:password|passwd|secret|token|api[_-]?key|authorization)["']?\s*[:=]\s*["']?(?:bearer\s+)?)([^\s"']{6,})`)
	long        = regexp.MustCompile(`[A-Za-z0-9+_=-]{28,}`)
)

// Scrub replaces what looks like a secret. What follows a word such as
// password goes in any case: a hole in a sentence does less harm than a leak.
func Scrub(s string) string {
	for _, r := range rules().of(s) {
		s = r.scrub(s)
	}
	s = urlPassword.ReplaceAllString(s, "${1}"+Mark+"@")
	return assigned.ReplaceAllString(s, "${1}"+Mark)
}

// Found tells whether text holds what looks like a secret. It is stricter with
// itself than Scrub: "token: whatever" in a sentence is no secret, a value of
// letters and digits behind it is.
func Found(s string) bool {
	for _, r := range rules().of(s) {
		if r.shape().MatchString(s) {
			return true
		}
	}
	if urlPassword.MatchString(s) {
		return true
	}
	for _, m := range assigned.FindAllStringSubmatch(s, -1) {
		if v := m[2]; len(v) >= 8 && classes(v) >= 2 && strings.ContainsFunc(v, unicode.IsDigit) {
			return true
		}
	}
	for _, w := range long.FindAllString(s, -1) {
		if random(w) {
			return true
		}
	}
	return false
}

// classes counts which of lower case, upper case and digits a word mixes.
func classes(w string) (n int) {
	for _, of := range []func(rune) bool{unicode.IsLower, unicode.IsUpper, unicode.IsDigit} {
		if strings.ContainsFunc(w, of) {
			n++
		}
	}
	return n
}

// random tells a made-up key from an identifier: it mixes all classes and
// changes between them too often for words. Commits, digests and UUIDs, which
// are hexadecimal, are none.
func random(w string) bool {
	if classes(w) < 3 {
		return false
	}
	class := func(r rune) int {
		switch {
		case unicode.IsLower(r):
			return 0
		case unicode.IsUpper(r):
			return 1
		case unicode.IsDigit(r):
			return 2
		}
		return 3
	}
	changes, last := 0, -1
	for _, r := range w {
		if c := class(r); c != last {
			changes, last = changes+1, c
		}
	}
	return changes*3 >= len(w)
}
