package cli

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// TestFind holds that the server finds what a person names, however many objects are newer,
// that an ambiguous name lists those it may be, and that a neighbour's is not found.
func TestFind(t *testing.T) {
	t.Parallel()
	y := yard(t)
	if err := y.Push("acme/web", map[string]string{"README": "hello\n"}); err != nil {
		t.Fatal(err)
	}
	const (
		old, twin = "3e327a16-1a1e-4636-a707-98e1e51d64e4", "3e327a16-2b2f-4636-a707-98e1e51d0001"
		foreign   = "beefbeef-1a1e-4636-a707-98e1e51dbeef"
		pull      = "0199d3a4-5b6c-7d8e-9f01-23456789abcd"
	)
	repos := db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND name = 'web'`)
	y.Write(y.Account, func(tx *db.Tx) error {
		repo, err := repos.One(tx, y.Account)
		if err != nil {
			return err
		}
		branch := "svc/the-oldest"
		rows := []seed.Row{
			seed.Task{ID: old, Account: y.Account, Repo: repo, Title: "The oldest", Status: "failed", Branch: &branch},
			seed.Task{ID: twin, Account: y.Account, Repo: repo, Title: "Its twin", Status: "failed"},
			seed.Pull{ID: pull, Account: y.Account, Repo: repo, Number: 7, Head: branch, State: "closed", Title: "Oldest pull",
				Task: new(old)},
			seed.Account{ID: "rival"},
			seed.Repo{ID: "theirs", Account: "rival"},
			seed.Task{ID: foreign, Account: "rival", Repo: "theirs", Title: "Not ours", Status: "failed"},
		}
		for i := range noun.Searched + 20 {
			rows = append(rows, seed.Task{ID: fmt.Sprintf("aaaa%04d-0000-4000-8000-000000000000", i), Account: y.Account, Repo: repo,
				Status: "failed"})
		}
		return seed.Add(tx, rows...)
	})
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner)
	for _, c := range []struct {
		words string
		shows []string
		code  int
	}{
		{"task view svc/the-oldest", []string{old, "The oldest"}, 0},
		{"task view 3e327a16-1a", []string{old}, 0},
		{"task view e51d64e4", []string{old}, 0},
		{"task view acme/web#7", []string{old}, 0},
		{"task list --branch svc/the-oldest", []string{"The oldest"}, 0},
		{"pr list --branch svc/the-oldest", []string{"Oldest pull", "acme/web"}, 0},
		{"pr reviews 6789abcd", nil, 0},
		{"pr reviews svc/the-oldest", nil, 0},
		{"task cancel aaaa", []string{"may be any of more than 8", "aaaa0519-0000-4000-8000-000000000000"}, exit.CodeMisused},
		{"task cancel beefbeef", []string{"no task is called"}, exit.CodeNotFound},
		{"task cancel acme/web#8", []string{"has no #8"}, exit.CodeNotFound},
	} {
		shown, code := p.terminal(strings.Fields(c.words))
		for _, want := range c.shows {
			if code != c.code || !strings.Contains(shown, want) {
				t.Errorf("yardmaster %s: exit code %d, without %q:\n%s", c.words, code, want, shown)
			}
		}
		if code != c.code || strings.Contains(shown, "Not ours") {
			t.Errorf("yardmaster %s: exit code %d:\n%s", c.words, code, shown)
		}
	}
	// What may be meant is listed with its title. The memory of those shown above is no help.
	other := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner)
	shown, code := other.terminal([]string{"task", "view", "3e327a16"})
	if code != exit.CodeMisused || !strings.Contains(shown, "The oldest") || !strings.Contains(shown, "Its twin") {
		t.Errorf("an ambiguous name: exit code %d:\n%s", code, shown)
	}
}
