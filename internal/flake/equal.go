package flake

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"yardmaster/internal/lazy"
)

// maxError limits an error of a fingerprint, in bytes.
const maxError = 300

var (
	workspace = lazy.New(`/home/runner/wor[k]/[^/\s]+/[^/\s]+/|/__w/[^/\s]+/[^/\s]+/|/builds/[^/\s]+/[^/\s]+/|[A-Z]:\\a\\[^\\\s]+\\[^\\\s]+\\`)
	temporary = lazy.New("(?:/private)?(?:/tmp|/var/tmp|/var/folders)/[^\\s:\"'`,;()\\[\\]{}<>]*|" +
		"[A-Z]:\\\\Users\\\\[^\\\\\\s]+\\\\AppData\\\\Local\\\\Temp\\\\[^\\s:\"'`,;()\\[\\]{}<>]*")
	instant   = lazy.New(`\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d:?\d\d)?`)
	uuid      = lazy.New(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`)
	pointer   = lazy.New(`\b0[xX][0-9a-fA-F]+\b`)
	digest    = lazy.New(`\b[0-9a-fA-F]{7,}\b`)
	address   = lazy.New(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}:\d{1,5}\b`)
	localPort = lazy.New(`\blocalhost:\d{1,5}\b`)
	duration  = lazy.New(`\b(?:\d+(?:\.\d+)?(?:h|m))*\d+(?:\.\d+)?(?:(?: ?(?:ns|[uµμ]s|ms|s|secs?|seconds?|milliseconds?|mins?|minutes?|hours?))|[hm])\b`)
)

// Equal takes out of a message what differs between two runs: the folder of the checkout,
// temporary paths, times, ids, addresses, durations and numbers. A number that follows a
// letter is part of a name, and stays. The answer has at most 300 bytes.
func Equal(message string) string {
	// The patterns never match more than this many bytes further on than they keep.
	s := strings.ToValidUTF8(message[:min(len(message), 8<<10)], "")
	s = clearWorkspace(s)
	s = temporary.ReplaceAllString(s, "<tmp>")
	s = instant.ReplaceAllString(s, "<t>")
	s = uuid.ReplaceAllString(s, "<id>")
	s = pointer.ReplaceAllString(s, "<x>")
	s = digest.ReplaceAllStringFunc(s, func(m string) string {
		if strings.ContainsAny(m, "0123456789") && strings.ContainsAny(m, "abcdefABCDEF") {
			return "<x>"
		}
		return m
	})
	s = address.ReplaceAllString(s, "<ip>")
	s = localPort.ReplaceAllString(s, "localhost:<n>")
	s = duration.ReplaceAllString(s, "<d>")
	s = strings.Join(strings.Fields(numbers(s)), " ")
	return strings.TrimRight(strings.ToValidUTF8(s[:min(len(s), maxError)], ""), " ")
}

func clearWorkspace(s string) string { return workspace.ReplaceAllString(s, "") }

// numbers replaces each run of digits that does not follow a letter.
func numbers(s string) string {
	var b strings.Builder
	before := ' '
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isDigit(r) {
			b.WriteString(s[i : i+n])
			before, i = r, i+n
			continue
		}
		end := i
		for end < len(s) && isDigit(rune(s[end])) {
			end++
		}
		if unicode.IsLetter(before) {
			b.WriteString(s[i:end])
		} else {
			b.WriteString("<n>")
		}
		before, i = '0', end
	}
	return b.String()
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

var (
	lineColumn = lazy.New(`(\.[A-Za-z]+):\d+(?::\d+)?`)
	parameter  = lazy.New(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?\b`)
)

// testID takes the line, the column, and parameters that are addresses or UUIDs out of the
// name of a test.
func testID(id string) string {
	id = lineColumn.ReplaceAllString(id, "$1")
	id = uuid.ReplaceAllString(id, "<id>")
	id = pointer.ReplaceAllString(id, "<x>")
	id = parameter.ReplaceAllString(id, "<ip>")
	id = strings.Join(strings.Fields(id), " ")
	return strings.ToValidUTF8(id[:min(len(id), 500)], "")
}

// named are paths of source files in a message, before a line or on their own.
var named = lazy.New(`(?:[A-Za-z]:)?[\w./\\@+-]*[\w+-]\.[A-Za-z][A-Za-z0-9]{0,9}(?::\d|\(\d|$|[\s"',;:)\]])`)

// filesIn are the paths that the beginning of a message names.
func filesIn(message string) (paths []string) {
	for _, m := range named.FindAllString(message[:min(len(message), 2<<10)], 4) {
		m = strings.TrimRight(m, "0123456789")
		paths = append(paths, strings.ReplaceAll(strings.TrimRight(m, ":( \t\n\"',;)]"), `\`, "/"))
	}
	return paths
}
