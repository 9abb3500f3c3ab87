package app

import (
	process "os/exec"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// has tells whether a commit of the shop is reached from another.
func (f *atGitHub) has(tip, sha string) bool {
	f.t.Helper()
	return process.Command("git", "-C", f.shop.Dir(), "merge-base", "--is-ancestor", sha, tip).Run() == nil
}

// A person who makes the branch of a task before its agent pushes, or moves it meanwhile,
// loses nothing: the push is refused, and the next try begins with what the person did.
func TestBranchIsTakenBeforeThePush(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := beginRun(t, e)
			defer f.tell()
			branch, first := f.task().Branch, f.waiting()
			f.shop.Push(f.ann, branch, f.shop.Head("main"))
			theirs := f.shop.Commit(f.ann, branch, "By hand", map[string]string{"hand.md": "Mine.\n"})
			f.release()
			patience.Until(f.t, "the push is refused", func() bool {
				s := f.task()
				return s.Status == "pending" && s.FailureKind != nil && *s.FailureKind == "push_rejected"
			})
			if f.shop.Head(branch) != theirs {
				t.Fatalf("there it is at %s", f.shop.Head(branch))
			}
			f.send("POST", "/v1/tasks/"+f.taskID+"/retry-now", f.owner, "{}").want(200)
			patience.Until(f.t, "the second agent has begun", func() bool {
				now := f.waiting()
				return len(now) == 1 && now[0] != first[0]
			})
			again := f.shop.Amend(f.ann, branch, "main", "By hand, anew", map[string]string{"hand.md": "Mine again.\n"})
			f.release()
			patience.Until(f.t, "the second push is refused", func() bool { return f.task().Status == "pending" && f.charged() == 2 })
			if f.shop.Head(branch) != again {
				t.Fatalf("there it is at %s", f.shop.Head(branch))
			}
			f.send("POST", "/v1/tasks/"+f.taskID+"/retry-now", f.owner, "{}").want(200)
			p := f.opened("the pull request is opened")
			if !f.has(p.HeadSHA, again) || f.shop.Head(branch) != p.HeadSHA {
				t.Errorf("%+v lacks %s; there it is at %s", p, again, f.shop.Head(branch))
			}
		})
	}
}

// A branch that is deleted while its agent works is made again with all of the work.
func TestBranchIsDeletedBeforeThePush(t *testing.T) {
	t.Parallel()
	f := beginRun(t, db.SQLite)
	defer f.tell()
	branch := f.task().Branch
	f.shop.Push(f.ann, branch, f.shop.Head("main"))
	f.shop.Commit(f.ann, branch, "By hand", map[string]string{"hand.md": "Mine.\n"})
	f.shop.Push(f.ann, branch, "")
	f.release()
	if p := f.opened("the pull request is opened"); f.shop.Head(branch) != p.HeadSHA {
		t.Errorf("%+v, there it is at %s", p, f.shop.Head(branch))
	}
}

// What a person does to the branch between the push of the agent and the pull request is
// what becomes of it: a branch that is deleted ends the task with a reason, and one that
// is replaced is opened as it is, with its own head to be approved.
func TestBranchChangesBeforeThePullRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm func(f *midRun, branch string)
		ends func(f *midRun, branch string) bool
	}{
		"deleted": {
			func(f *midRun, branch string) { f.shop.Push(f.ann, branch, "") },
			func(f *midRun, _ string) bool {
				s := f.task()
				p, _ := f.pull()
				return s.Status == "failed" && *s.FailureKind == "pr_closed" && *s.Failure != "" && p.State == "closed"
			},
		},
		"replaced": {
			func(f *midRun, branch string) {
				f.shop.Amend(f.ann, branch, "main", "By hand", map[string]string{"hand.md": "Mine.\n"})
			},
			func(f *midRun, branch string) bool {
				p, ok := f.pull()
				return ok && p.State == "open" && p.Number > 0 && p.HeadSHA == f.shop.Head(branch)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := beginRun(t, db.SQLite)
			defer f.tell()
			late := f.gh.Break(github.Fault{Operation: "POST /repos/{owner}/{repo}/pulls", Effect: github.Fail, Status: 503})
			f.release()
			patience.Until(f.t, "GitHub does not open it", func() bool { return f.gh.Seen(late) > 0 })
			branch := f.task().Branch
			before := f.shop.Head(branch)
			c.harm(f, branch)
			f.gh.Mend()
			patience.Until(f.t, "it goes on", func() bool { return c.ends(f, branch) })
			if now := f.shop.Head(branch); now == before {
				t.Errorf("what the person did is undone: it is at %s", now)
			}
		})
	}
}
