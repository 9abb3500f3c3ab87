package app

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	adapter "yardmaster/internal/codehost/github"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// midRun is a repository at GitHub where an agent has begun to work, and waits for the test.
type midRun struct {
	*atGitHub
	places string // a folder that has the checkouts
	taskID string
}

// beginRun has an agent begin to work. more are fields of the set-up of the App.
func beginRun(t *testing.T, e db.Engine, more ...string) *midRun {
	t.Helper()
	f := &midRun{atGitHub: connect(t, e, more...)}
	f.setOut()
	return f
}

// setOut files a task, and waits until its agent waits.
func (f *midRun) setOut() {
	f.t.Helper()
	f.places = filepath.Dir(f.t.TempDir()) // the folder of the box is another one in it
	f.send("PUT", "/v1/templates/edit", f.owner, `{"agent": "command", "command": ["sh", "-c", "touch .git/begun; `+
		`while ! test -e .git/go; do sleep 0.05; done; echo Now. >> README.md && git commit -qam 'Say when' && echo Done."]}`).want(200)
	var filed struct {
		TaskID string `json:"task_id"`
	}
	decode(f.t, f.send("POST", "/v1/tasks", f.owner,
		`{"repo": "acme/shop", "title": "Say when", "problem": "The README does not say when.", "template": "edit"}`).want(202), &filed)
	f.taskID = filed.TaskID
	var e struct{ Token string }
	decode(f.t, f.send("POST", "/v1/runners/enrollments", f.owner, `{}`).want(201), &e)
	f.box(e.Token)
	defer f.tell()
	patience.Until(f.t, "the agent has begun", func() bool { return len(f.waiting()) == 1 })
}

// waiting are the checkouts whose agents wait.
func (f *midRun) waiting() (all []string) {
	f.t.Helper()
	_ = filepath.WalkDir(f.places, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // a checkout that is over
			return nil //nolint:nilerr // the walk goes on
		case d.IsDir() && d.Name() == "objects":
			return fs.SkipDir
		case d.Name() == "begun" && filepath.Base(filepath.Dir(path)) == ".git":
			all = append(all, filepath.Dir(path))
		}
		return nil
	})
	return all
}

// worked tells whether an agent has changed its checkout.
func (f *midRun) worked() bool {
	for _, checkout := range f.waiting() {
		if b, err := os.ReadFile(filepath.Join(filepath.Dir(checkout), "README.md")); err == nil && strings.Contains(string(b), "Now.") {
			return true
		}
	}
	return false
}

// release lets agents end that wait.
func (f *midRun) release() {
	f.t.Helper()
	for _, checkout := range f.waiting() {
		if err := os.WriteFile(filepath.Join(checkout, "go"), nil, 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.t.Fatal(err)
		}
	}
}

type shownHold struct {
	Reason     string
	ClearsWhen string `json:"clears_when"`
}

type shownTask struct {
	Status, Branch string
	FailureKind    *string `json:"failure_kind"`
	Failure        *string
	Holds          []shownHold
	PRID           *string `json:"pr_id"`
}

func (f *midRun) task() (out shownTask) {
	f.t.Helper()
	decode(f.t, f.send("GET", "/v1/tasks/"+f.taskID, f.owner, "").want(200), &out)
	return out
}

// opened waits for the pull request of the task.
func (f *midRun) opened(what string) (p shownPull) {
	f.t.Helper()
	patience.Until(f.t, what, func() bool {
		f.release() // of later tries
		id := f.task().PRID
		if id == nil {
			return false
		}
		decode(f.t, f.send("GET", "/v1/prs/"+*id, f.owner, "").want(200), &p)
		return p.State == "open" && p.Number > 0
	})
	return p
}

// reachable tells whether the server is let at the repository, under a name.
func (f *midRun) reachable(name string) bool {
	f.t.Helper()
	var r struct{ Enabled bool }
	a := f.send("GET", "/v1/repos/acme/"+name, f.owner, "")
	return a.StatusCode == 200 && json.Unmarshal(a.body, &r) == nil && r.Enabled
}

func (f *midRun) tell() {
	if f.t.Failed() {
		f.t.Logf("the task: %+v", f.task())
		f.atGitHub.tell()
	}
}

// What happens to a repository while an agent works in it delays the pull request at most.
func TestHostChangesInMidRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm, mend func(f *midRun)
		stops      bool // harm ends the run
	}{
		"the repository is renamed": {harm: func(f *midRun) {
			f.shop.Rename(f.ann, "store")
			patience.Until(f.t, "the name is known", func() bool { return f.reachable("store") })
		}},
		"the installation is suspended": {
			harm: func(f *midRun) { f.inst.Suspend(f.ann, true) },
			mend: func(f *midRun) { f.inst.Suspend(f.ann, false) },
		},
		"the installation is removed": {
			harm: func(f *midRun) {
				f.inst.Remove(f.ann)
				patience.Until(f.t, "the run is stopped", func() bool {
					return f.task().Status == "pending" && f.waitsFor("not installed")
				})
			},
			stops: true,
			mend:  func(f *midRun) { f.app.Install(f.gh.Account("acme"), f.shop) },
		},
		"the token is refused at the push": {harm: func(f *midRun) {
			f.gh.Break(github.Fault{
				Operation: "info/refs", Path: regexp.MustCompile(`/shop\.git/`), Effect: github.Fail, Status: 401, Times: 1,
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := beginRun(t, db.SQLite)
			defer f.tell()
			c.harm(f)
			if c.mend != nil {
				patience.Until(f.t, "it is out of reach", func() bool { return !f.reachable("shop") })
			}
			f.release()
			if c.mend != nil {
				if !c.stops {
					patience.Until(f.t, "the agent has worked", f.worked)
				}
				c.mend(f)
			}
			p := f.opened("the pull request is opened")
			if f.shop.Head(f.task().Branch) != p.HeadSHA {
				t.Errorf("%+v, but there the branch is at %s", p, f.shop.Head(f.task().Branch))
			}
		})
	}
}

// A permission that the installation has not granted holds the pull request up: a person is
// told its name, and the work goes on once it is granted.
func TestPermissionGrantedInMidRun(t *testing.T) {
	t.Parallel()
	f := &midRun{atGitHub: connect(t, db.SQLite)}
	f.withhold("pull_requests")
	f.setOut()
	defer f.tell()
	f.release()
	asked := f.asked
	patience.Until(f.t, "a person is asked", func() bool { return strings.Contains(asked(), "pull_requests: write") })
	if s := f.task(); s.Status != "awaiting_ci" {
		t.Errorf("meanwhile the task is %+v", s)
	}
	f.inst.Accept(f.ann)
	f.opened("the pull request is opened")
	patience.Until(f.t, "nothing is asked any more", func() bool {
		return !strings.Contains(asked(), `"resolved_at":null`)
	})
	if n := strings.Count(asked(), "did not let Yardmaster do its work"); n != 1 {
		t.Errorf("a person was asked %d times", n)
	}
}

// withhold installs the App anew with the permission to read of something, where it asks for
// the one to write as well.
func (f *midRun) withhold(name string) {
	f.t.Helper()
	all := map[string]string{}
	for _, p := range adapter.Needed {
		if !p.Switch {
			all[p.Name] = p.Level
		}
	}
	fewer := maps.Clone(all)
	fewer[name] = "read"
	events := []string{"push", "pull_request"}
	f.inst.Remove(f.ann)
	patience.Until(f.t, "it is out of reach", func() bool { return !f.reachable("shop") })
	f.app.Ask(fewer, events)
	f.inst = f.app.Install(f.gh.Account("acme"), f.shop)
	f.app.Ask(all, events) // the owner has not accepted that yet
	patience.Until(f.t, "it is back", func() bool { return f.reachable("shop") })
}

// asked are the escalations.
func (f *midRun) asked() string {
	f.t.Helper()
	return string(f.send("GET", "/v1/escalations", f.owner, "").want(200).body)
}

// Without the permission to push a task waits, no try is charged to it, and no other one is
// begun. A person is told once what to accept, and where. Then the task goes on by itself.
func TestPushPermissionGranted(t *testing.T) {
	t.Parallel()
	f := &midRun{atGitHub: connect(t, db.SQLite)}
	f.withhold("contents")
	f.setOut()
	defer f.tell()
	patience.Until(f.t, "the task waits for the permission", func() bool {
		f.release()
		return f.task().Status == "pending" && f.waitsFor("contents: write")
	})
	if n := f.charged(); n != 0 {
		t.Errorf("%d tries are charged to the task", n)
	}
	if asked := f.asked(); strings.Count(asked, "did not let Yardmaster do its work") != 1 ||
		!strings.Contains(asked, "contents: write") || !strings.Contains(asked, "/installations/new") {
		t.Errorf("asked %s", asked)
	}
	f.inst.Accept(f.ann)
	f.opened("the pull request is opened")
	patience.Until(f.t, "nothing is asked any more", func() bool { return !strings.Contains(f.asked(), `"resolved_at":null`) })
}

// A person who deletes or replaces the branch of a task keeps what they did, or the work
// comes after it; nobody's commit is lost.
func TestBranchChangesInMidRun(t *testing.T) {
	t.Parallel()
	f := beginRun(t, db.SQLite)
	defer f.tell()
	f.release()
	p := f.opened("the pull request is opened")
	branch := f.task().Branch
	theirs := f.shop.Amend(f.ann, branch, "main", "Say it otherwise", map[string]string{"README.md": "# Shop\nThen.\n"})
	patience.Until(f.t, "the head is known", func() bool {
		decode(t, f.send("GET", "/v1/prs/"+p.ID, f.owner, "").want(200), &p)
		return p.HeadSHA == theirs
	})
	if now := f.shop.Head(branch); now != theirs {
		t.Errorf("there it is at %s", now)
	}
	f.shop.Push(f.ann, branch, "")
	patience.Until(f.t, "the pull request is closed", func() bool {
		decode(t, f.send("GET", "/v1/prs/"+p.ID, f.owner, "").want(200), &p)
		return p.State == "closed"
	})
	patience.Until(f.t, "the task has ended", func() bool { s := f.task(); return s.Status == "failed" && *s.FailureKind == "pr_closed" })
}

// A repository that is archived while an agent works in it holds its task until it is back.
func TestArchivedInMidRun(t *testing.T) {
	t.Parallel()
	f := beginRun(t, db.SQLite)
	defer f.tell()
	waits := func() bool { return f.waitsFor("is archived") }
	f.shop.Archive(f.ann, true)
	patience.Until(f.t, "it is out of reach", func() bool { return !f.reachable("shop") })
	f.release()
	patience.Until(f.t, "the task waits for the repository", func() bool { return f.task().Status == "pending" && waits() })
	if n := f.charged(); n != 0 {
		t.Errorf("%d tries are charged to the task", n)
	}
	f.shop.Archive(f.ann, false)
	patience.Until(f.t, "it is back", func() bool { return f.reachable("shop") })
	if waits() {
		t.Error("the task waits for the repository, which is back")
	}
}

// waitsFor tells whether the task waits for its repository, for a reason with some words.
func (f *midRun) waitsFor(words string) bool {
	f.t.Helper()
	return slices.ContainsFunc(f.task().Holds, func(h shownHold) bool {
		return h.Reason == task.HoldRepo && strings.Contains(h.ClearsWhen, words)
	})
}

// charged is how many tries are charged to the task.
func (f *midRun) charged() int64 {
	f.t.Helper()
	var row task.Row
	err := f.db.Read(f.t.Context(), func(tx *db.Tx) (err error) {
		row, _, err = task.Get(tx, f.acct, f.taskID)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return row.Charged
}

// A repository that is deleted, or given to somebody else, while an agent works in it ends
// the run. Its task says why it waits, and the box takes other work.
func TestGoneInMidRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm func(f *midRun)
		says string
	}{
		"deleted":     {func(f *midRun) { f.shop.Delete(f.ann) }, "was deleted"},
		"transferred": {func(f *midRun) { f.shop.Transfer(f.ann, f.gh.Org("rival")) }, "not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := beginRun(t, db.SQLite)
			defer f.tell()
			c.harm(f)
			patience.Until(f.t, "the task waits for the repository", func() bool {
				return f.task().Status == "pending" && f.waitsFor(c.says)
			})
			patience.Until(f.t, "the slot is free", func() bool {
				var page struct {
					Data []struct {
						Slots    int
						Presence struct{ Telemetry *struct{ Free int } }
					}
				}
				decode(t, f.send("GET", "/v1/runners", f.owner, "").want(200), &page)
				return len(page.Data) == 1 && page.Data[0].Presence.Telemetry != nil &&
					page.Data[0].Presence.Telemetry.Free == page.Data[0].Slots
			})
			if n := f.charged(); n != 0 {
				t.Errorf("%d tries are charged to the task", n)
			}
		})
	}
}
