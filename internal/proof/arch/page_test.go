package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page on the architecture has a line for every package, and none for a package
// that is gone. The domains are left out: their folder is their table of contents.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(page), "\n## Packages\n")
	if !found {
		t.Fatal("docs/architecture.md has no list of packages")
	}
	list, _, _ = strings.Cut(list, "\n## ")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| ((?:`[^`]+`(?:, )?)+) \\|").FindAllStringSubmatch(list, -1) {
		for _, name := range strings.Split(m[1], ", ") {
			named[strings.Trim(name, "`")] = true
		}
	}
	all := packages(product(t))
	for _, p := range all {
		if !strings.HasPrefix(p, "domain/") && !named[p] {
			t.Errorf("docs/architecture.md does not name %s: say in its list of packages what it holds", p)
		}
	}
	for p := range named {
		if !slices.Contains(all, p) {
			t.Errorf("docs/architecture.md names %s, which is no package", p)
		}
	}
	if !strings.Contains(string(page), "](libraries.md)") {
		t.Error("docs/architecture.md does not lead to libraries.md")
	}
}
