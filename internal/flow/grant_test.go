package flow

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// stingy is the git of a host that refuses every push for a permission.
type stingy struct {
	codehost.GitAccess
	lacks string
}

// Upstream implements codehost.GitAccess.
func (s stingy) Upstream(context.Context, codehost.Repo, bool) (*url.URL, string, time.Time, error) {
	return nil, "", time.Time{}, &codehost.ForbiddenError{Permission: s.lacks, Asked: true}
}

// paged is a maker of Apps that knows where they are installed.
type paged struct{ connection.Maker }

// InstallAddress implements connection.Maker.
func (paged) InstallAddress(address string, a connection.App) string { return address + "/" + a.Slug }

// A refused push is recorded and asked about once for a repository, until the permission is
// granted. A refusal that comes after the grant is not recorded: nothing would end it.
func TestLackingPermission(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		const host = "host:one"
		hub, log := event.NewHub(), slog.New(slog.DiscardHandler)
		hosts := connection.New(connection.Needs{
			DB: d, Hub: hub, Ring: seal.New(), Hosts: codehost.NewHosts(nil), Maker: paged{}, Logger: log, Seats: 1, Home: "acme",
			Told: delivery.Told{},
		})
		g := Grants{DB: d, Hub: hub, Connections: hosts, Logger: log}
		event.Detach(d)
		connection.Granted.On(d, g.Retry)
		connection.Granted.On(d, ResolveGranted)
		web := codehost.Repo{Host: host, ID: "11", Owner: "Acme", Name: "web"}
		read := func(fn func(tx *db.Tx) error) {
			t.Helper()
			if err := d.Write(db.WithAccount(t.Context(), "acme"), fn); err != nil {
				t.Fatal(err)
			}
		}
		tells := func(contents string, with ...codehost.RepoInfo) {
			t.Helper()
			if err := hosts.Installation(t.Context(), host, codehost.InstallationEvent{Added: with, Installation: codehost.Installation{
				ID: "1", Owner: codehost.User{ID: "100", Login: "Acme"}, Permissions: map[string]string{"contents": contents},
			}}); err != nil {
				t.Fatal(err)
			}
		}
		pushes := func(wantLacks string, wantAsked int, wantOpen bool) {
			t.Helper()
			for range 2 {
				if _, _, _, err := g.Watch(stingy{lacks: "contents: write"}).Upstream(t.Context(), web, true); err == nil {
					t.Error("the refusal is hidden")
				}
			}
			read(func(tx *db.Tx) error {
				r, _, err := repo.At(tx, web)
				if err != nil || r.Lacks != wantLacks {
					t.Errorf("it lacks %q, want %q", r.Lacks, wantLacks)
				}
				rows, err := db.Select[struct{ Body string }](tx, db.Build("SELECT body FROM escalations WHERE account_id = ", tx.Account).SQL(""))
				if len(rows) != wantAsked || wantAsked > 0 && !strings.Contains(rows[0].Body, "accept it at https://one/yard") {
					t.Errorf("asked %+v", rows)
				}
				open, err2 := escalation.TitlesOfRepo(tx, r.ID, refusalCategory)
				if (len(open) > 0) != wantOpen {
					t.Errorf("open are %q", open)
				}
				if err == nil {
					err = err2
				}
				return err
			})
		}
		read(func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ada"}); err != nil {
				return err
			}
			return hosts.Add(tx, host, "https://one", "acme", connection.App{ID: "7", Slug: "yard", OwnerID: "100", OwnerLogin: "Acme"},
				connection.Switches{})
		})
		pushes("", 0, false) // of a repository that is unknown
		tells("read", codehost.RepoInfo{Repo: web})
		pushes("contents: write", 1, true)
		tells("write")
		pushes("", 1, false)
		tells("read")
		pushes("contents: write", 2, true)
		read(func(tx *db.Tx) error { // an intent that is refused for it asks nothing more
			r, _, err := repo.At(tx, web)
			if err != nil {
				return err
			}
			return g.Raise(tx, intent.Trouble{RepoID: r.ID, Kind: "pull.merge", Permission: "contents: write", Asked: true})
		})
		pushes("contents: write", 2, true)
		// The App is removed and installed again, with all that it asks for: nothing is asked any more.
		repo.Installed.On(d, RetryRepo(func(*db.Tx, []string) error { return nil }))
		read(func(tx *db.Tx) error {
			r, _, err := repo.At(tx, web)
			if err != nil {
				return err
			}
			return g.Raise(tx, intent.Trouble{RepoID: r.ID, Kind: "pull.open", Why: "The code host has not let the server in for a day."})
		})
		for _, lost := range []bool{true, false} { // its end may not be delivered
			id := map[bool]string{true: "2", false: "3"}[lost]
			if lost {
				if err := hosts.Installation(t.Context(), host, codehost.InstallationEvent{
					Installation: codehost.Installation{ID: "1", Gone: true},
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := hosts.Installation(t.Context(), host, codehost.InstallationEvent{
				Added: []codehost.RepoInfo{{Repo: web}}, Installation: codehost.Installation{
					ID: id, Owner: codehost.User{ID: "100", Login: "Acme"}, Permissions: map[string]string{"contents": "write"},
				},
			}); err != nil {
				t.Fatal(err)
			}
			read(func(tx *db.Tx) error {
				r, _, err := repo.At(tx, web)
				if err != nil || r.Lacks != "" {
					t.Errorf("installed again as %s, it lacks %q", id, r.Lacks)
				}
				if open, err := escalation.TitlesOfRepo(tx, r.ID, refusalCategory); err != nil || len(open) != 0 {
					t.Errorf("installed again as %s, open are %q, %v", id, open, err)
				}
				return g.Raise(tx, intent.Trouble{RepoID: r.ID, Kind: "pull.open", Permission: "contents: write"})
			})
		}
	})
}
