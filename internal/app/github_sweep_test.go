package app

import (
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// sweep has the repository swept, for its issues and for itself.
func (f *atGitHub) sweep() {
	f.t.Helper()
	ctx := policy.With(f.t.Context(), policy.Actor{Credential: policy.System})
	for range 2 {
		err := f.db.Write(db.WithAccount(ctx, f.acct), func(tx *db.Tx) error {
			r, _, err := repo.ByName(tx, "acme", "shop")
			if err != nil {
				return err
			}
			return delivery.Watch(tx, r.ID)
		})
		if err != nil {
			f.t.Fatal(err)
		}
		part[*delivery.Service](f.App).Look(codehost.WithUrgency(ctx, codehost.ForSweeps))
	}
}

// Without deliveries, sweeps hear what people say about a pull request: a command in its
// conversation, a review that asks for changes, and that it was dismissed.
func TestWordsWithoutDeliveries(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := connect(t, e)
			defer f.tell()
			bob := f.gh.Person("bob")
			f.shop.Allow(bob, "write")
			f.shop.Commit(bob, "mine", "Say more", map[string]string{"README.md": "# Shop\nMore.\n"})
			there := f.shop.OpenPull(bob, github.NewPull{Title: "Say more", Head: "mine", Base: "main"})
			patience.Until(f.t, "the pull request is known", func() bool {
				p, ok := f.pull()
				return ok && p.State == "open"
			})
			f.sweep() // what was said from now on is news to the next

			if err := f.gh.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.gh.Spoil(github.HookFaults{Vanished: 1})
			name := "@" + f.app.Slug
			talk := f.shop.Issue(there.Number)
			talk.Comment(bob, name+" fix")
			patience.Until(f.t, "the command is heard and answered", func() bool {
				f.sweep()
				return len(f.said(there.Number)) == 1
			})
			talk.Comment(bob, name+" explain")
			review, err := there.Review(f.ann, github.NewReview{Event: "REQUEST_CHANGES", Body: "Say less."})
			if err != nil {
				t.Fatal(err)
			}
			f.shop.Check(f.gh.ActionsApp(), there.Head(), "build", "queued").Conclude("success")
			heard := func() map[string]int {
				kinds := map[string]int{}
				var trail struct{ Data []struct{ Kind string } }
				decode(t, f.send("GET", "/v1/audit/events?per_page=200", f.owner, "").want(200), &trail)
				for _, r := range trail.Data {
					kinds[r.Kind]++
				}
				return kinds
			}
			patience.Until(f.t, "the review and the question are heard", func() bool {
				f.sweep()
				return heard()["pr.reviewed_at_host"] == 1 && len(f.said(there.Number)) == 2
			})
			there.Dismiss(f.ann, review) // GitHub does not say whether that alone changes a pull request
			talk.Comment(f.ann, "It is fine.")
			patience.Until(f.t, "the dismissal is heard", func() bool {
				f.sweep()
				return heard()["pr.reviewed_at_host"] == 2
			})
			f.gh.Spoil(github.HookFaults{})
			talk.Comment(bob, name+" explain")
			patience.Until(f.t, "a delivery is heard", func() bool { return len(f.said(there.Number)) == 3 })
			f.sweep()
			f.sweep()
			if got := heard(); got["pr.reviewed_at_host"] != 2 || got["command.given"] != 3 {
				t.Errorf("heard twice: %v, said %s", got, strings.Join(f.said(there.Number), "\n"))
			}
		})
	}
}
