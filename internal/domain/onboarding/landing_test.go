package onboarding

import (
	"context"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

// An installation is named to members of its account, and nobody else can tell it from
// one that there is not.
func TestLanding(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := &Service{Needs: Needs{DB: d}}
		err := d.Write(context.Background(), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.User{ID: "ada"}, seed.User{ID: "eve"},
				seed.Member{Account: "acme", User: "ada"}, seed.Member{Account: "rival", User: "eve"}); err != nil {
				return err
			}
			return seed.Add(tx, seed.Installation{ID: "42", Account: "acme", Owner: "acme-inc<b>"},
				seed.Installation{ID: "43", Account: "acme", Owner: "gone", Gone: true})
		})
		if err != nil {
			t.Fatal(err)
		}
		page := func(user, installation string) string {
			t.Helper()
			var actor policy.Actor
			if user != "" {
				actor = policy.Actor{Credential: policy.Session, UserID: user, AccountID: "rival"}
			}
			call := op.Call{Request: op.Request{Home: "/ui/"}}
			ctx := call.Context(t.Context(), actor)
			r, err := s.installed(ctx, landingIn{InstallationID: installation})
			text, ok := r.Body.(string)
			if err != nil || !ok || r.Status != 200 {
				t.Fatalf("%+v %v", r, err)
			}
			// It looks again until it names the installation.
			if refresh := r.Header["Refresh"]; (refresh == "5") != (user != "" && !strings.Contains(text, "is known here")) {
				t.Errorf("%s: Refresh: %s\n%s", user, refresh, text)
			}
			return text
		}
		if text := page("ada", "42"); !strings.Contains(text, "acme-inc&lt;b&gt;</bdi> is known here") {
			t.Errorf("a member reads:\n%s", text)
		}
		for _, c := range []struct{ user, id string }{{"eve", "42"}, {"ada", "43"}, {"ada", "42'"}, {"eve", ""}} {
			if text := page(c.user, c.id); text != page(c.user, "44") {
				t.Errorf("%s can tell %s from one that there is not:\n%s", c.user, c.id, text)
			}
		}
		if text := page("", "42"); text != page("", "44") || !strings.Contains(text, "/login?return_to=%2Fui%2F") {
			t.Errorf("a stranger reads:\n%s", text)
		}
	})
}
