package app

import (
	"fmt"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/proof/github"
)

// The repository's own check is a check run at GitHub, which a rule of the branch may
// demand. A person who may write has it run again there, and nobody else.
func TestOwnCheckAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := place{yard: boot(t, e), files: shopWith("version: 1\nreview: {mode: off}\nchecks: {command: 'grep -n Shop README.md'}\n")}.connect(t)
			defer f.tell()
			f.shop.Rules(f.ann, github.Ruleset{Checks: []github.Required{{Name: ci.CheckName, App: f.app}}})
			f.works()
			var p shownPull
			f.eventually("GitHub has opened the pull request", func() (ok bool) {
				p, ok = f.pull()
				return ok && p.State == "open" && p.Number > 0
			})
			f.shop.Check(f.gh.ActionsApp(), p.HeadSHA, "build", "success")
			f.eventually("it is checked, and a person is asked", func() (ok bool) {
				p, ok = f.pull()
				return ok && p.Checks == "passed" && p.Pending != nil
			})
			own := func() (all []github.CheckState) {
				for _, c := range f.shop.Checks(p.HeadSHA) {
					if c.App == f.app.ID && c.Name == ci.CheckName {
						all = append(all, c)
					}
				}
				return all
			}
			ended := func(n int) bool {
				all := own()
				return len(all) == n && all[n-1].Conclusion == "success" && all[n-1].Title == "Passed"
			}
			f.eventually("GitHub has its end", func() bool { return ended(1) })

			f.shop.Rerequest(f.gh.Person("mallory"), own()[0].ID)
			f.shop.Rerequest(f.ann, own()[0].ID)
			f.eventually("it has run again", func() bool { return ended(2) })
			f.eventually("the head has passed again", func() bool { p, _ = f.pull(); return p.Checks == "passed" })
			var runs struct{ Data []struct{ ID string } }
			decode(t, f.send("GET", "/v1/tasks?filter=kind:ci", f.owner, "").want(200), &runs)
			if len(runs.Data) != 2 {
				t.Errorf("%d checks have run", len(runs.Data))
			}
			f.send("POST", "/v1/prs/"+p.ID+"/approve-pending", f.owner, fmt.Sprintf(`{"head_sha": %q}`, p.HeadSHA)).want(200)
			f.eventually("it is merged", func() bool { p, _ = f.pull(); return p.State == "merged" })
		})
	}
}
