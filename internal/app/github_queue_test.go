package app

import (
	"fmt"
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/github"
)

type queuedPull struct {
	shownPull
	Queue *struct {
		Queue, State string
		Position     int
	}
	Babysit struct{ State string }
}

func (f *atGitHub) queued(prID string) (p queuedPull) {
	f.t.Helper()
	decode(f.t, f.send("GET", "/v1/prs/"+prID, f.owner, "").want(200), &p)
	return p
}

// Where a branch has a merge queue at GitHub, an approved head is entered there. Our check
// reports on the head of its group. A head that is thrown out goes to an agent; one whose
// order was taken back leaves the queue.
func TestMergeQueueAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := connect(t, e)
			defer f.tell()
			f.shop.Rules(f.ann, github.Ruleset{
				Checks: []github.Required{{Name: "build", App: f.gh.ActionsApp()}, {Name: "yardmaster/review", App: f.app}},
				Queue:  &github.QueueRule{},
			})
			f.works()
			var p shownPull
			f.eventually("GitHub has opened the pull request", func() (ok bool) {
				p, ok = f.pull()
				return ok && p.State == "open" && p.Number > 0
			})
			there := f.shop.Pull(p.Number)
			f.shop.Check(f.gh.ActionsApp(), p.HeadSHA, "build", "success")
			f.shop.Check(f.app, p.HeadSHA, "yardmaster/review", "success")
			f.eventually("a person is asked", func() bool { p, _ = f.pull(); return p.Pending != nil && p.Checks == "passed" })
			f.send("POST", "/v1/prs/"+p.ID+"/approve-pending", f.owner, fmt.Sprintf(`{"head_sha": %q}`, p.HeadSHA)).want(200)
			f.eventually("it waits in the queue of GitHub", func() bool {
				q := f.queued(p.ID)
				return there.Queued() && q.Queue != nil && q.Queue.Queue == "host" && q.Queue.State == "queued" && q.Queue.Position == 1
			})
			var shown struct {
				Waiting []struct {
					PRID string `json:"pr_id"`
				}
			}
			decode(t, f.send("GET", "/v1/repos/acme/shop/merge-queue", f.owner, "").want(200), &shown)
			if len(shown.Waiting) != 1 || shown.Waiting[0].PRID != p.ID {
				t.Errorf("the queue shows %+v", shown)
			}
			group := there.Group()
			f.eventually("our check has reported on the group", func() bool {
				return slices.ContainsFunc(f.shop.Checks(group), func(c github.CheckState) bool {
					return c.Name == "yardmaster/review" && c.Conclusion == "success"
				})
			})
			f.shop.Check(f.gh.ActionsApp(), group, "build", "success")
			f.eventually("it is merged", func() bool { p, _ = f.pull(); return p.State == "merged" })
			if p.MergeSHA == nil || there.Merged() != *p.MergeSHA {
				t.Errorf("merged as %v here, %q there", p.MergeSHA, there.Merged())
			}
			var by struct {
				By *string `json:"merged_by"`
			}
			decode(t, f.send("GET", "/v1/prs/"+p.ID, f.owner, "").want(200), &by)
			if by.By == nil || *by.By != "user:"+f.user {
				t.Errorf("the merge is decided by %v", by.By)
			}
		})
	}
}
