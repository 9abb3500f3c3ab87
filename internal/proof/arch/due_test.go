package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownDue are the tables whose column due_at is in a statement, and why. What is due belongs to
// package db/due: take a table out when its queue is converted, and add none. A column that no
// statement has is there for nodes of older releases.
var ownDue = map[string]string{
	"due":                "the queue of all queues",
	"account_measures":   "one measure an account and hour: rows that never end",
	"ci_tidying":         "one row: when old evidence is forgotten next",
	"event_cursors":      "the place of a reader in the record, which one node has at a time",
	"host_redeliveries":  "one row a host: when it is asked next what was lost",
	"mails":              "batches by server, which package db/due has not",
	"merge_batches":      "not converted: a batch is looked at again and again",
	"repo_sweeps":        "one row a repository that never ends",
	"webhook_deliveries": "batches by hook, and hooks that are paused",

	// Converted, and read for something else.
	"ci_reports":     "converted in 0371",
	"host_heads":     "converted in 0371",
	"issue_walks":    "converted in 0581; says since when a walk is owed",
	"kb_indexes":     "converted in 0411; says since when a look is owed",
	"tracker_issues": "converted in 0374",
}

// What has to be done later is told by an entry of package db/due, and not by a column.
func TestOwnDue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "db", "schema", "sqlite.sql"))
	if err != nil {
		t.Fatal(err)
	}
	tables := regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\n[^\n]*\)[^\n]*;`).FindAllStringSubmatch(string(text), -1)
	var sql []string
	for _, f := range product(t) {
		if strings.HasPrefix(f.pkg(), "proof/") {
			continue
		}
		for _, m := range regexp.MustCompile("`[^`]*`").FindAllString(string(f.text), -1) {
			if strings.Contains(m, "due_at") {
				sql = append(sql, m)
			}
		}
	}
	column, found := regexp.MustCompile(`(?m)(^|, )\s*\w*due_at\s+BIGINT`), map[string]bool{}
	for _, m := range tables {
		named := regexp.MustCompile(`\b` + m[1] + `\b`)
		if !column.MatchString(m[0]) || !slices.ContainsFunc(sql, named.MatchString) {
			continue
		}
		found[m[1]] = true
		if ownDue[m[1]] == "" {
			t.Errorf("%s has a time at which it is due: make it a queue of db/due, see the package comment", m[1])
		}
	}
	for table := range ownDue {
		if !found[table] {
			t.Errorf("no statement has due_at of %s any more: take it out of the list", table)
		}
	}
}
