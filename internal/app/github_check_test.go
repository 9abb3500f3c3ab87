package app

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// knowsPolicy waits until the server has read the policy of the repository.
func (f *atGitHub) knowsPolicy(text string) {
	f.t.Helper()
	patience.Until(f.t, "the policy is read", func() bool {
		return strings.Contains(string(f.send("GET", "/v1/repos/acme/shop/policy", f.owner, "").body), text)
	})
}

// The repository's own check is a check run at GitHub, which a rule of the branch may
// demand. A person who may write has it run again there, and nobody else.
func TestOwnCheckAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := place{yard: boot(t, e), files: shopWith("version: 1\nreview: {mode: off}\nchecks: {command: 'grep -n Shop README.md'}\n")}.connect(t)
			defer f.tell()
			f.knowsPolicy("grep -n Shop")
			f.shop.Rules(f.ann, github.Ruleset{Checks: []github.Required{{Name: ci.CheckName, App: f.app}}})
			f.works()
			var p shownPull
			patience.Until(f.t, "GitHub has opened the pull request", func() (ok bool) {
				p, ok = f.pull()
				return ok && p.State == "open" && p.Number > 0
			})
			f.shop.Check(f.gh.ActionsApp(), p.HeadSHA, "build", "success")
			patience.Until(f.t, "it is checked, and a person is asked", func() (ok bool) {
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
			patience.Until(f.t, "GitHub has its end", func() bool { return ended(1) })

			f.shop.Rerequest(f.gh.Person("mallory"), own()[0].ID)
			f.shop.Rerequest(f.ann, own()[0].ID)
			patience.Until(f.t, "it has run again", func() bool { return ended(2) })
			patience.Until(f.t, "the head has passed again", func() bool { p, _ = f.pull(); return p.Checks == "passed" })
			var runs struct{ Data []struct{ ID string } }
			decode(t, f.send("GET", "/v1/tasks?filter=kind:ci", f.owner, "").want(200), &runs)
			if len(runs.Data) != 2 {
				t.Errorf("%d checks have run", len(runs.Data))
			}
			f.send("POST", "/v1/prs/"+p.ID+"/approve-pending", f.owner, fmt.Sprintf(`{"head_sha": %q}`, p.HeadSHA)).want(200)
			patience.Until(f.t, "it is merged", func() bool { p, _ = f.pull(); return p.State == "merged" })
		})
	}
}

// A merge queue waits for our check on the head of its group, and merges once it has
// passed there.
func TestOwnCheckInTheMergeQueue(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			// The description of Enterprise Servers has no deliveries of merge queues.
			gh, err := github.Start(github.Options{Enterprise: "3.19.0"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = gh.Close() }) // the test has had what it needs
			f := place{yard: boot(t, e), gh: gh, files: shopWith("version: 1\nreview: {mode: off}\nchecks: {command: 'grep -n Shop README.md'}\n")}.connect(t)
			defer f.tell()
			f.knowsPolicy("grep -n Shop")
			f.shop.Rules(f.ann, github.Ruleset{
				Checks: []github.Required{{Name: ci.CheckName, App: f.app}}, Queue: &github.QueueRule{Minutes: 30},
			})
			var enrollment struct{ Token string }
			decode(t, f.send("POST", "/v1/runners/enrollments", f.owner, `{}`).want(201), &enrollment)
			f.box(enrollment.Token)
			head := f.shop.Commit(f.ann, "when", "Say when", map[string]string{"WHEN.md": "Now.\n"})
			there := f.shop.OpenPull(f.ann, github.NewPull{Title: "Say when", Head: "when"})
			passed := func(sha string) bool {
				all := f.shop.Checks(sha)
				return len(all) == 1 && all[0].Name == ci.CheckName && all[0].Conclusion == "success"
			}
			patience.Until(f.t, "its head has passed", func() bool { return passed(head) })
			there.Enqueue(f.ann)
			group := there.Group()
			if group == "" || group == head {
				t.Fatalf("the group is %q", group)
			}
			patience.Until(f.t, "the queue has merged it", func() bool { return there.Merged() != "" })
			if !passed(group) {
				t.Errorf("its group has %+v", f.shop.Checks(group))
			}
		})
	}
}
