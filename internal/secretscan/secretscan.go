// Package secretscan recognises text that looks like a secret. It helps people and
// promises nothing: it knows the forms that vendors give their keys (rules.tsv),
// values after words such as password, and strings too random to be prose. Where
// plain text is stored for everybody to read, Found refuses it; where text has to
// be passed on, Scrub removes the secret.
package secretscan

import (
	"strings"
	"unicode"

	"yardmaster/internal/lazy"
)

// Mark replaces a secret.
const Mark = "[redacted]"

var (
	urlPassword = lazy.New(`(://[^\s:/@]+:)[^\s@/]+@`)
	assigned    = lazy.New(
		`(?i)\b((?:password|passwd|secret|token|api[_-]?key|authorization)["']?\s*[:=]\s*["']?(?:bearer\s+)?)([^\s"']{6,})`)
	long = lazy.New(`[A-Za-z0-9+_=-]{28,}`)
)

// Scrub replaces text that looks like a secret. It always replaces the value after
// a word such as password: a gap in a sentence does less harm than a secret.
func Scrub(s string) string {
	for _, r := range rules().of(s) {
		s = r.scrub(s)
	}
	s = urlPassword.ReplaceAllString(s, "${1}"+Mark+"@")
	return assigned.ReplaceAllString(s, "${1}"+Mark)
}

// Found tells whether text contains what looks like a secret. It demands more than
// Scrub: "token: whatever" in a sentence is no secret, but a value with letters and
// digits after it is.
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

// classes counts how many of lower case, upper case and digits a word contains.
func classes(w string) (n int) {
	for _, of := range []func(rune) bool{unicode.IsLower, unicode.IsUpper, unicode.IsDigit} {
		if strings.ContainsFunc(w, of) {
			n++
		}
	}
	return n
}

// random distinguishes a generated key from an identifier: a key contains all
// classes and changes between them too often for words. Commits, digests and UUIDs
// are hexadecimal and do not count.
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
