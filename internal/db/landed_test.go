package db_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db/migrations"
)

// landed lists the migrations, oldest first, each with the SHA-256 of its text, as
// sha256sum(1) does.
const landed = "testdata/migrations.txt"

// TestMigrationsStay holds that no migration is changed, taken away or put before another:
// databases that have run it would never hear of that.
func TestMigrationsStay(t *testing.T) {
	text, err := os.ReadFile(landed)
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(strings.TrimSpace(string(text)), "\n")
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var now []string
	for _, name := range names {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		now = append(now, fmt.Sprintf("%x  %s", sha256.Sum256(text), name))
	}
	for i, line := range list {
		if i >= len(now) || now[i] != line {
			t.Fatalf("%s is not as it was, or another one stands before it: write a new migration with a higher number",
				line[strings.LastIndex(line, " ")+1:])
		}
	}
	switch fresh := now[len(list):]; {
	case *update:
		if err := os.WriteFile(landed, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	case len(fresh) > 0:
		t.Errorf("%s lacks\n%s\ngo test ./internal/db -run TestMigrationsStay -update adds it", landed, strings.Join(fresh, "\n"))
	}
}
