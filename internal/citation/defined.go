package citation

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"yardmaster/internal/lazy"
)

// token tells whether a text has a name that is no part of another one.
func token(text, name string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 || name == "" {
			return false
		}
		a, b := from+i, from+i+len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:a])
		after, _ := utf8.DecodeRuneInString(text[b:])
		if !inWord(before) && !inWord(after) {
			return true
		}
		from = a + 1
	}
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}

// keywords introduce a name in one language or another.
const keywords = `func|fn|function|def|class|type|struct|interface|enum|trait|impl|const|var|let|val|static|final|package|module|` +
	`namespace|define|record|sub|proc|export|alias|public|private|protected|async|abstract|extern|inline|table|view|column|` +
	`service|message|rpc|resource|variable|local|global|declare|typedef|property|field|macro_rules!`

// registers are what a setting is read or declared by: a flag, a variable of the environment, the
// name of a field in a file.
const registers = `flag|option|env|getenv|lookup|argument|arg|param|setting|config|var|json|yaml|yml|toml|db|xml|form|query|header|` +
	`field|key|prop|name|string|int|bool|duration|float`

// control begins lines that call what they name.
var control = lazy.New(`^\s*(?:if|for|while|return|switch|await|else|elif|case|go|defer|with|assert)\b`)

// introduced tells whether some line of a text introduces a name, rather than uses it.
func introduced(text, name string) bool {
	introduces := Introducer(name)
	for line := range strings.Lines(text) {
		if introduces(strings.TrimRight(line, "\r\n")) {
			return true
		}
	}
	return false
}

// Introducer returns a function that tells whether a line introduces a name.
func Introducer(name string) func(line string) bool {
	n, quote := regexp.QuoteMeta(name), "[\"'`]"
	shapes := []*regexp.Regexp{
		// func (s *Service) name(, const name =, public static int name
		regexp.MustCompile(`(?i)(?:^|[\s#(])(?:` + keywords + `)\s+(?:\([^)]*\)\s*)?(?:[\w*&<>\[\].]+\s+){0,3}` +
			quote + `?(?-i:` + n + `)` + quote + `?\s*(?:[(={:;<\[,]|$|\s[\w*\[("])`),
		// flag.Int("name", …), yaml:"name", add_argument("--name")
		regexp.MustCompile(`(?i)(?:` + registers + `)[\w.]*\s*[(:=]\s*\\?` + quote + `-{0,2}(?-i:` + n + `)(?:` + quote + `|,)`),
		// name: value, "name": value, NAME=value, - name: value
		regexp.MustCompile(`^[\s\-*|#/]*` + quote + `?-{0,2}` + n + quote + `?\s*(?:[:?+]?=(?:[^=]|$)|:(?:[^:]|$))`),
		// name Type, as fields and constants in blocks are; a member of an enumeration
		regexp.MustCompile(`^\s*` + n + `(?:\s+[A-Za-z*\[]|\s*[,;]?\s*$)`),
		// a heading, a row of a table or an item of a list about it
		regexp.MustCompile(`^\s*(?:#+|\||[-*+])\s*["'` + "`*" + `]*-{0,2}` + n + `\b`),
	}
	// name(…) {, as methods are, and name() of a shell
	made := regexp.MustCompile(`^\s*(?:[\w*&<>\[\]]+\s+){0,2}` + n + `\s*\((?:[^;]*(?:\{|=>|:)|\))\s*$`)
	return func(line string) bool {
		if !strings.Contains(line, name) {
			return false
		}
		return made.MatchString(line) && !control.MatchString(line) ||
			slices.ContainsFunc(shapes, func(s *regexp.Regexp) bool { return s.MatchString(line) })
	}
}
