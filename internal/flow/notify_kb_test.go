package flow

import (
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/kb"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
)

// Owners and admins are told of proposals that wait, and relieved when none does.
func TestProposalsAreTold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		if err := seed.Add(tx, seed.Account{ID: "library"}, seed.User{ID: "vera"}, seed.User{ID: "tim"},
			seed.Member{Account: "library", User: "vera", Role: "owner"}, seed.Member{Account: "library", User: "tim", Role: "viewer"},
			seed.Repo{ID: "books", Account: "library"}); err != nil {
			t.Fatal(err)
		}
		repo := "books"
		propose := db.S(`INSERT INTO kb_proposals (id, repo_id, slug, run_id, task_id, declared, base, kind, title, body, files, commit_sha,
			why, state, reason, decided_by, created_at) VALUES ($1, 'books', 's', 'run', 'task', $1, 0, 'note', '', '', '[]', '', '', $2, '', '', 1)`)
		err := tx.As("library", func() error {
			for i, c := range []struct {
				state string
				told  bool
			}{{"judging", false}, {"waiting", true}, {"waiting", true}} {
				if _, err := propose.Exec(tx, string(rune('a'+i)), c.state); err != nil {
					return err
				}
				e := event.Recorded{Kind: kb.ProposalAsked[0].Name(), Object: "s", RepoID: &repo}
				n, ok, err := Notify{}.proposed(tx, e)
				if err != nil || ok != c.told || ok && (!slices.Equal(n.To, []string{"vera"}) || n.Subject != "books") {
					t.Errorf("%d: %v %+v, %v", i, ok, n, err)
				}
				if id, over, err := pagesRelieved(tx, e); err != nil || id != "books" || over == c.told {
					t.Errorf("%d: relieved %v, %v", i, over, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
