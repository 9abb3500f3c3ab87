package db_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"yardmaster/internal/db"
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

// Databases of either text of 0228 come up to date: an earlier one made the index of shared
// boxes, which 0246 makes.
func TestBothTextsOfConsents(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	before := fstest.MapFS{}
	for _, name := range names {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if name < "0246" {
			before[name] = &fstest.MapFile{Data: text}
		}
	}
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			log := slog.New(slog.DiscardHandler)
			whole := func(made bool) []string {
				pool := empty(t, e)
				if err := db.Climb(t.Context(), pool, e, before, log); err != nil {
					t.Fatal(err)
				}
				if made {
					if _, err := pool.Exec(`CREATE INDEX boxes_shared ON boxes (owner_target) WHERE owner_target = 'shared'`); err != nil {
						t.Fatal(err)
					}
				}
				if err := db.Climb(t.Context(), pool, e, migrations.FS, log); err != nil {
					t.Fatal(err)
				}
				return told(t, e, pool)
			}
			if made, not := whole(true), whole(false); !slices.Equal(made, not) {
				t.Errorf("they differ:\n%s\n\n%s", strings.Join(made, "\n"), strings.Join(not, "\n"))
			}
		})
	}
}
