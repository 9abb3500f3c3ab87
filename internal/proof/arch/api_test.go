package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// ours matches names of the product: its own, and those of its credentials, addresses
// and nouns.
var ours = regexp.MustCompile(`(?i)yardmaster|dev_[a-z]|svc[_-]|/oauth|/auth/|blocker|fix_|setup_url|acme`)

// TestProductIsData holds that the packages through which every capability goes name
// no capability: the product's own texts come in as data.
func TestProductIsData(t *testing.T) {
	rooms := []string{"api/op", "api/rest", "api/openapi"}
	for _, f := range product(t) {
		if !slices.Contains(rooms, f.pkg()) {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && ours.MatchString(text) {
					t.Errorf("%s says %.80q, which the program should give it", f.path, text)
				}
			}
			return true
		})
	}
}

// TestPatternsAreSpelledBesideThem holds that the words for a pattern stand beside
// it, because words elsewhere would not follow a change of the pattern.
func TestPatternsAreSpelledBesideThem(t *testing.T) {
	tag := regexp.MustCompile(`pattern:"((?:[^"\\]|\\.)*)"`)
	said := map[string]string{}
	for _, f := range product(t) {
		for _, m := range regexp.MustCompile("`[^`\n]*pattern:\"[^`\n]*`").FindAll(f.text, -1) {
			pattern := string(tag.FindSubmatch(m)[1])
			says := ""
			if s := regexp.MustCompile(`says:"([^"]*)"`).FindSubmatch(m); s != nil {
				says = string(s[1])
			}
			if other, known := said[pattern]; known && other != says {
				t.Errorf("%s: %s is said to mean %q here and %q elsewhere", f.path, pattern, says, other)
			}
			said[pattern] = says
		}
	}
	if len(said) == 0 {
		t.Error("no pattern was found")
	}
}
