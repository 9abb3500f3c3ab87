//go:build !race

package dashboard_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/parts"
)

// The parts that only calculate hold on random input: they throw at nothing, lose no text,
// and take no more than their time; a drawing has no overlaps, and markdown draws only what
// it may.
func TestPureParts(t *testing.T) {
	t.Parallel()
	b := parts.Open(t, "testdata/parts/main.tsx")
	for _, name := range []string{"ansi", "lcs", "patch", "dag", "markdown", "transcript", "sse", "board", "plan"} {
		found := browser.Eval[struct {
			N     int
			Wrong []string
		}](b, "parts("+quoted(name)+", 1)")
		for _, w := range found.Wrong {
			t.Errorf("%s: %s", name, w)
		}
		if found.N < 100 {
			t.Errorf("%s was tried on %d inputs", name, found.N)
		}
		t.Logf("%s was tried on %d inputs", name, found.N)
	}
}

// The dashboard and the command line agree, about each character there is, whether it can be
// seen, and whether a selector after it is part of its drawing.
func TestOneTableOfHiddenCharacters(t *testing.T) {
	t.Parallel()
	b := parts.Open(t, "testdata/parts/hidden.tsx")
	same := func(what string, got []rune, want func(c rune) bool) {
		t.Helper()
		there, n := map[rune]bool{}, 0
		for _, c := range got {
			there[c] = true
		}
		for c := range rune(unicode.MaxRune + 1) {
			// A browser may know symbols that Go does not know yet.
			newer := strings.HasPrefix(what, "takes") && unicode.Is(unicode.Cn, c)
			if !utf8.ValidRune(c) || newer || !there[c] && !want(c) {
				continue
			}
			if n++; there[c] != want(c) {
				t.Errorf("U+%04X %s in the browser: %t, in Go: %t", c, what, there[c], want(c))
			}
		}
		if n < 400 {
			t.Errorf("only %d characters: %s", n, what)
		}
	}
	same("is hidden", browser.Eval[[]rune](b, "hidden()"), func(c rune) bool { return inert.Escape(string(c)) != string(c) })
	for _, selector := range []string{"\ufe0e", "\ufe0f"} {
		same("takes a selector", browser.Eval[[]rune](b, "drawn("+quoted(selector)+")"), func(c rune) bool {
			return strings.HasSuffix(inert.Escape(string(c)+selector), selector)
		})
	}
}
