package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesNameTheirTests holds that every promise of the pages on security names
// tests, and that every named test exists.
func TestPromisesNameTheirTests(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "security*.md"))
	if err != nil || len(pages) < 4 {
		t.Fatal(pages, err)
	}
	var promises strings.Builder
	for _, p := range pages {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		_, of, found := strings.Cut(string(text), "## Promises")
		if !found {
			t.Errorf("%s makes no promises", p)
		}
		promises.WriteString(of)
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
	rows := 0
	for line := range strings.Lines(promises.String()) {
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
	if rows < 75 {
		t.Errorf("the pages make only %d promises", rows)
	}
}
