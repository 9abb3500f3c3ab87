package app

import (
	"fmt"
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
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

// inQueue has an agent's work approved, and waits until it is in the queue of GitHub.
func (f *atGitHub) inQueue() (p shownPull, there *github.Pull) {
	f.t.Helper()
	f.shop.Rules(f.ann, github.Ruleset{
		Checks: []github.Required{{Name: "build", App: f.gh.ActionsApp()}, {Name: "yardmaster/review", App: f.app}},
		Queue:  &github.QueueRule{},
	})
	f.works()
	patience.Until(f.t, "GitHub has opened the pull request", func() (ok bool) {
		p, ok = f.pull()
		return ok && p.State == "open" && p.Number > 0
	})
	there = f.shop.Pull(p.Number)
	f.shop.Check(f.gh.ActionsApp(), p.HeadSHA, "build", "success")
	f.shop.Check(f.app, p.HeadSHA, "yardmaster/review", "success")
	patience.Until(f.t, "a person is asked", func() bool { p, _ = f.pull(); return p.Pending != nil && p.Checks == "passed" })
	f.send("POST", "/v1/prs/"+p.ID+"/approve-pending", f.owner, fmt.Sprintf(`{"head_sha": %q}`, p.HeadSHA)).want(200)
	patience.Until(f.t, "it waits in the queue of GitHub", func() bool {
		q := f.queued(p.ID)
		return there.Queued() && q.Queue != nil && q.Queue.Queue == "host" && q.Queue.State == "queued" && q.Queue.Position == 1
	})
	return p, there
}

// Where a branch has a merge queue at GitHub, an approved head is entered there. Our check
// reports on the head of its group, and what GitHub merges is merged.
func TestMergeQueueAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := connect(t, e)
			defer f.tell()
			p, there := f.inQueue()
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
			patience.Until(f.t, "our check has reported on the group", func() bool {
				return slices.ContainsFunc(f.shop.Checks(group), func(c github.CheckState) bool {
					return c.Name == "yardmaster/review" && c.Conclusion == "success"
				})
			})
			f.shop.Check(f.gh.ActionsApp(), group, "build", "success")
			patience.Until(f.t, "it is merged", func() bool { p, _ = f.pull(); return p.State == "merged" })
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

// A head whose checks fail in the queue of GitHub goes to an agent. One whose task is
// cancelled leaves the queue.
func TestMergeQueueLeftAtGitHub(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave func(f *atGitHub, p shownPull, there *github.Pull)
		ends  func(f *atGitHub, p shownPull) bool
	}{
		"its checks fail": {
			func(f *atGitHub, _ shownPull, there *github.Pull) {
				f.shop.Check(f.gh.ActionsApp(), there.Group(), "build", "failure")
			},
			func(f *atGitHub, p shownPull) bool {
				var page struct{ Data []struct{ Title string } }
				decode(f.t, f.send("GET", "/v1/tasks?filter=kind:babysit", f.owner, "").want(200), &page)
				return len(page.Data) > 0 && page.Data[0].Title == "Repair #1, which fails together with main"
			},
		},
		"a person takes it out": {
			func(f *atGitHub, _ shownPull, there *github.Pull) { there.Dequeue(f.ann) },
			func(f *atGitHub, p shownPull) bool {
				p, _ = f.pull()
				return p.Needs != nil && p.Needs.Why == "merge_failed"
			},
		},
		"its task is cancelled": {
			func(f *atGitHub, p shownPull, _ *github.Pull) {
				var one struct {
					TaskID string `json:"task_id"`
				}
				decode(f.t, f.send("GET", "/v1/prs/"+p.ID, f.owner, "").want(200), &one)
				f.send("POST", "/v1/tasks/"+one.TaskID+"/cancel", f.owner, "{}").want(200)
			},
			func(f *atGitHub, p shownPull) bool { p, _ = f.pull(); return p.State == "closed" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := connect(t, db.SQLite)
			defer f.tell()
			p, there := f.inQueue()
			c.leave(f, p, there)
			patience.Until(f.t, "it has left the queue", func() bool { return !there.Queued() && f.queued(p.ID).Queue == nil })
			patience.Until(f.t, "it goes on", func() bool { return c.ends(f, p) })
		})
	}
}
