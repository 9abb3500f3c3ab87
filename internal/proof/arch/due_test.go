package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// ownDue are the tables with a column due_at, and why. What is due belongs to package db/due:
// take a table out when its queue is converted, and add none.
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

	// Columns that older releases read and write; a later release drops them.
	"artifacts":       "converted in 0580",
	"asks":            "converted in 0611",
	"backlog_imports": "converted in 0376",
	"approval_mails":  "converted in 0373",
	"ci_logs":         "converted in 0371",
	"ci_reports":      "converted in 0371",
	"host_heads":      "converted in 0371",
	"host_intents":    "converted in 0670",
	"pull_actions":    "converted in 0680",
	"push_messages":   "converted in 0370",
	"issue_walks":     "converted in 0581; says since when a walk is owed",
	"issues":          "converted in 0581",
	"dashboard_syncs": "converted in 0582",
	"kb_indexes":      "converted in 0411; says since when a look is owed",
	"repo_creations":  "converted in 0372",
	"review_runs":     "converted in 0583",
	"tracker_issues":  "converted in 0374",
}

// What has to be done later is told by an entry of package db/due, and not by a column.
func TestOwnDue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "db", "schema", "sqlite.sql"))
	if err != nil {
		t.Fatal(err)
	}
	tables := regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\n[^\n]*\)[^\n]*;`).FindAllStringSubmatch(string(text), -1)
	column, found := regexp.MustCompile(`(?m)(^|, )\s*\w*due_at\s+BIGINT`), map[string]bool{}
	for _, m := range tables {
		if !column.MatchString(m[0]) {
			continue
		}
		found[m[1]] = true
		if ownDue[m[1]] == "" {
			t.Errorf("%s has a time at which it is due: make it a queue of db/due, see the package comment", m[1])
		}
	}
	for table := range ownDue {
		if !found[table] {
			t.Errorf("%s has no due_at any more: take it out of the list", table)
		}
	}
}
