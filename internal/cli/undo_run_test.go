package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/executable"
	"yardmaster/internal/proof/seed"
)

var (
	// offered is a command line that is printed to be copied: it stands at the end of its line.
	offered = regexp.MustCompile(`(?m): (yardmaster [a-z].*)$`)
	// unfinished is one in which a person fills in a word, or that goes on until it is stopped.
	unfinished = regexp.MustCompile(`\b[A-Z]{2,}\b|…|task watch|box join`)
)

// Commands that are printed as an undo, or as what comes next, are taken by a real server in the state in
// which they are printed.
func TestPrintedCommandsAreTaken(t *testing.T) {
	t.Parallel()
	y := yard(t)
	if err := y.Push("acme/web", map[string]string{"README": "hello\n"}); err != nil {
		t.Fatal(err)
	}
	const (
		failed, dropped, behind = "3e327a11-1a1e-4636-a707-98e1e51d0001", "3e327a12-1a1e-4636-a707-98e1e51d0002",
			"3e327a13-1a1e-4636-a707-98e1e51d0003"
		kept, closing = "3e327a14-1a1e-4636-a707-98e1e51d0004", "0199d3a4-5b6c-7d8e-9f01-23456789abcd"
	)
	repos := db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND name = 'web'`)
	depends := db.S(`INSERT INTO task_deps (task_id, depends_on) VALUES ($1, $2)`)
	y.Write(y.Account, func(tx *db.Tx) error {
		repo, err := repos.One(tx, y.Account)
		if err != nil {
			return err
		}
		task := func(id, status, why string) seed.Row {
			return seed.Task{ID: id, Account: y.Account, Repo: repo, Status: status, Failure: why, Title: "It's " + status,
				Problem: "Do it."}
		}
		shipped := seed.Task{ID: kept, Account: y.Account, Repo: repo, Status: "awaiting_review", Title: "Shipped", Problem: "Do it.",
			Pull: new(closing)}
		if err := seed.Add(tx, task(failed, "failed", "agent_crashed"), task(dropped, "cancelled", ""),
			task(behind, "failed", noun.DependencyFailed), shipped,
			seed.Pull{ID: closing, Account: y.Account, Repo: repo, Number: 7, Head: "svc/x", Task: new(kept)}); err != nil {
			return err
		}
		_, err = depends.Exec(tx, behind, dropped)
		return err
	})
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\"\n", self)
	if err := executable.Write(filepath.Join(bin, "yardmaster"), text, 0o700); err != nil {
		t.Fatal(err)
	}
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner, "NO_COLOR=1", "PATH="+bin+":"+os.Getenv("PATH"))
	tried := 0
	for _, c := range []struct {
		line  string
		shows []string
	}{
		{"task create --repo acme/web --title Mend 'Fix the parser.'", nil},
		{"task cancel @last", []string{"Cancelled.", "It is over for good.", "--title Mend", "!redispatch", "!pull request"}},
		{"task cancel " + kept, []string{"Its pull request acme/web#7 is closed: yardmaster pr view " + closing, "!redispatch"}},
		{"task view " + dropped, []string{"--title 'It'\\''s cancelled'", "!redispatch"}},
		{"task view " + behind, []string{"It depends on: yardmaster task view " + dropped, "!task redispatch"}},
		{"task view " + failed, []string{"Try it again with: yardmaster task redispatch "}},
		{"repo remove acme/web", []string{"Undo: yardmaster repo enable acme/web"}},
		{"budget set 5", []string{"Undo: "}},
		{"schedule create --title Update --body Raise. --cron '0 6 * * 1-5' --zone UTC", []string{"Undo: "}},
		{"token create --name ci --scopes read:tasks", []string{"Undo: "}},
		{"member invite bob@example.com --role member", []string{"Undo: "}},
	} {
		shown := p.holds(c.line, 0, c.shows...)
		for _, m := range offered.FindAllStringSubmatch(shown, -1) {
			line := strings.TrimSpace(m[1])
			if unfinished.MatchString(line) {
				continue
			}
			tried++
			out, code := p.program([]string{"/bin/sh", "-c", line})
			if code != 0 && !strings.Contains(out, "commits_gone") { // a seeded pull request has none
				t.Errorf("%s prints %q, which ends with %d:\n%s", c.line, line, code, out)
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d commands were printed", tried)
	}
	p.holds("task list --jq .[].title", 0, "It's cancelled\nShipped\nMend\nMend\n")
}
