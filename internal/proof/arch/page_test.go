package arch

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages of packages have a line for every package, and none for a package
// that is gone. The domains are left out: their folder is their table of contents.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	list := string(docsPage(t, "packages.md")) + string(docsPage(t, "packages-proof.md"))
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| ((?:`[^`]+`(?:, )?)+) \\|").FindAllStringSubmatch(list, -1) {
		for _, name := range strings.Split(m[1], ", ") {
			named[strings.Trim(name, "`")] = true
		}
	}
	all := packages(product(t))
	for _, p := range all {
		if !strings.HasPrefix(p, "domain/") && !named[p] {
			t.Errorf("docs/packages.md and docs/packages-proof.md do not name %s: say there what it holds", p)
		}
	}
	for p := range named {
		if !slices.Contains(all, p) {
			t.Errorf("docs/packages.md or docs/packages-proof.md names %s, which is no package", p)
		}
	}
	if !strings.Contains(string(docsPage(t, "architecture.md")), "](libraries.md)") {
		t.Error("docs/architecture.md does not lead to libraries.md")
	}
}
