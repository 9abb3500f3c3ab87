package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// ours are names of the product: its own, its credentials', its addresses', its
// nouns'.
var ours = regexp.MustCompile(`(?i)yardmaster|dev_[a-z]|svc[_-]|/oauth|/auth/|blocker|fix_|setup_url|acme`)

// The rooms that every capability goes through know no capability: what only
// this product says comes in as data.
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

// A pattern that people meet has its wording beside it, or none: a table
// elsewhere would go on saying what the pattern once was.
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
