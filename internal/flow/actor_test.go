package flow

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/actor"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// letters keeps digests that are to be mailed.
type letters struct{ got []digest.Letter }

// Mail implements digest.Mails.
func (l *letters) Mail(_ *db.Tx, m digest.Letter) error {
	l.got = append(l.got, m)
	return nil
}

// A digest and a notice name who decided a merge, also somebody who has left and a machine,
// and nobody of another account.
func TestPeopleAreNamed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return at }}, func(t *testing.T, d *db.DB) {
		at = time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
		var mails letters
		actors := actor.New(actor.Needs{DB: d})
		digests := digest.New(digest.Needs{
			DB: d, Due: duetest.New(d, event.NewHub()), Logger: slog.New(slog.DiscardHandler), Mails: &mails,
			BaseURL: "https://yard.example", Actors: actors,
		})
		ada, pr, name := "ada", "p1", "deploy"
		merged := db.Micros(at.Add(time.Hour))
		var machine string
		write := func(fn func(*db.Tx) error) {
			t.Helper()
			if err := d.Write(db.WithAccount(t.Context(), "acme"), fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.Repo{ID: "web", Account: "acme"},
				seed.User{ID: "ada"}, seed.User{ID: "b", Login: "bob"}, seed.User{ID: "e", Login: "eve"},
				seed.Member{Account: "acme", User: "ada"}, seed.Member{Account: "acme", User: "b"},
				seed.Member{Account: "rival", User: "e"}); err != nil {
				return err
			}
			made, err := token.Mint(tx, policy.PAT, "", &name, policy.Scopes(policy.WritePRs), nil)
			machine = made.ID
			return err
		})
		write(func(tx *db.Tx) error { return errors.Join(digests.Plan(tx, "acme"), digests.Plan(tx, "rival")) })
		write(func(tx *db.Tx) error {
			if err := people.Remove(tx, "acme", "b"); err != nil {
				return err
			}
			rows := []seed.Row{seed.Task{
				ID: "t", Account: "acme", Repo: "web", Status: string(task.Merged), Title: "Show the year", By: &ada, Pull: &pr,
			}}
			for i, by := range []string{"user:b", "pat:" + machine, "policy", "code-host:octocat", "user:e", "code-host"} {
				rows = append(rows, seed.Pull{
					ID: "p" + string(rune('1'+i)), Account: "acme", Repo: "web", Number: i + 1, State: "merged", Merged: &merged,
					MergedBy: by,
				})
			}
			return seed.Add(tx, rows...)
		})
		write(func(tx *db.Tx) error {
			n, ok, err := Notify{Actors: actors}.done(tx, event.Recorded{Kind: "task.merged", Object: "t"})
			if !ok || n.Title != "Merged: Show the year" || n.Text != "Decided by bob." {
				t.Errorf("the notice is %+v", n)
			}
			return err
		})
		at = at.Add(24 * time.Hour)
		duetest.Pass(t.Context(), t, digests.Due)
		if len(mails.got) != 1 {
			t.Fatalf("%d mails", len(mails.got))
		}
		for _, text := range []string{mails.got[0].Text, mails.got[0].HTML} {
			for _, want := range []string{
				", by bob", ", by the token deploy", ", by the policy", ", by octocat (at the code host)", ", by somebody",
				", by somebody at the code host",
			} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			for _, not := range []string{"user:", "pat:", "eve"} {
				if strings.Contains(text, not) {
					t.Errorf("%q is in\n%s", not, text)
				}
			}
		}
	})
}
