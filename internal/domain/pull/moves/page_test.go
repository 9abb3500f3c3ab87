package moves

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPage holds that docs/pull-moves.md has the table as it is. With UPDATE=1 it writes it there.
func TestPage(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "..", "docs", "pull-moves.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableHead)
	if !found {
		t.Fatalf("%s has no table that begins with %q", path, tableHead)
	}
	_, after, _ := strings.Cut(rest, "\n\n")
	want := before + Table() + "\n" + after
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s does not have the table as it is: run UPDATE=1 go test ./internal/domain/pull/moves -run TestPage", path)
	}
}
