package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// deleters are the tables of which some statement of the program deletes rows.
func deleters(t *testing.T) map[string]bool {
	t.Helper()
	statement := regexp.MustCompile(`DELETE FROM (\w+)`)
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "../proof/") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range statement.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatal("no statement deletes anything:", err)
	}
	return found
}

// Every table of the schema is in the list once, with what the program really does: of those that are
// kept for good nothing is deleted, and of all others something is.
func TestRetentionNamesEveryTable(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../db/schema/sqlite.sql")
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for _, m := range regexp.MustCompile(`(?m)^CREATE TABLE "?(\w+)"?`).FindAllStringSubmatch(string(schema), -1) {
		tables = append(tables, m[1])
	}
	if len(tables) < 100 {
		t.Fatal("the schema has few tables:", tables)
	}
	deleted := deleters(t)
	var keys []string
	for _, s := range new(Config).settings() {
		keys = append(keys, s.key)
	}
	told := map[string]bool{}
	for _, k := range Retention {
		if (k.Setting != "") != (k.Ends == ByDays) || k.Setting != "" && !slices.Contains(keys, k.Setting) || k.Why == "" {
			t.Errorf("%v: its setting is %q, and its reason %q", k.Tables, k.Setting, k.Why)
		}
		for _, table := range k.Tables {
			switch {
			case told[table]:
				t.Errorf("%s is in the list twice", table)
			case !slices.Contains(tables, table):
				t.Errorf("there is no table %s", table)
			case deleted[table] != (k.Ends != Never):
				t.Errorf("%s: the list says that it ends %s; statements that delete from it: %v", table, k.Ends, deleted[table])
			}
			told[table] = true
		}
	}
	for _, table := range tables {
		if !told[table] {
			t.Errorf("the table %s is not in the list: say how long its rows are kept", table)
		}
	}
}
