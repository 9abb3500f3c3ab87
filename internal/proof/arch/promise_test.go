package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesNameTheirTests holds that every promise of the page on security names
// tests, and that every named test exists.
func TestPromisesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	begins := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, f := range files(t) {
		if f.test {
			for _, m := range begins.FindAllSubmatch(f.text, -1) {
				declared[string(m[1])] = true
			}
		}
	}
	name := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	_, promises, found := strings.Cut(string(page), "## Promises")
	if !found {
		t.Fatal("the page makes no promises")
	}
	rows := 0
	for line := range strings.Lines(promises) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Promise") {
			continue
		}
		rows++
		named := name.FindAllStringSubmatch(line, -1)
		if named == nil {
			t.Errorf("no test holds the promise %.80s…", line)
		}
		for _, m := range named {
			if !declared[m[1]] {
				t.Errorf("%s is named and does not exist", m[1])
			}
		}
	}
	if rows < 20 {
		t.Errorf("the page makes only %d promises", rows)
	}
}
