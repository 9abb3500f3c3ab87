package notification

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page about notifications lists every kind, what it tells, and by which channels.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(page), "## Who hears what")
	for _, k := range kinds {
		by := strings.Join(k.on, ", ")
		if k.locked && k.urgent {
			by += "; cannot be switched off, and passes quiet hours"
		}
		if want := fmt.Sprintf("| `%s` | %s | %s |\n", k.name, k.doc, by); !strings.Contains(table, want) {
			t.Errorf("docs/notifications.md lacks\n%s", want)
		}
	}
	if n := strings.Count(table, "\n| `"); n != len(kinds) {
		t.Errorf("docs/notifications.md has %d kinds, and there are %d", n, len(kinds))
	}
}
