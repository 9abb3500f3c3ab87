package web

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Tables of the dashboard are asked for texts of strangers: each has its own members alone,
// and what is kept by such a text is a Map. Failures of fetch have a name of their own.
func TestTablesOfTheDashboard(t *testing.T) {
	plain := regexp.MustCompile(`(?m)^(export )?const \w+: Record<string, .*> = \{|useState<Record<string|instanceof TypeError\) return`)
	tables := 0
	err := fs.WalkDir(os.DirFS("src"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(name, ".ts") {
			return err
		}
		b, err := os.ReadFile("src/" + name)
		tables += strings.Count(string(b), "= table(")
		for _, l := range plain.FindAllString(string(b), -1) {
			t.Errorf("%s: %s", name, l)
		}
		return err
	})
	if err != nil || tables < 10 {
		t.Errorf("%d tables, %v", tables, err)
	}
}
