package app

import (
	"context"
	"os"
	process "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// While GitHub takes no pushes, and then answers no fetches, a task loses no try and none
// of its work: the next try goes on from the work of the first.
func TestGitHubIsDown(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := &midRun{atGitHub: connect(t, e)}
			f.places = t.TempDir()
			f.send("PUT", "/v1/templates/edit", f.owner,
				`{"agent": "command", "command": ["sh", "-c", "echo Now. >> README.md && git commit -qam 'Say when' && echo Done."]}`).want(200)
			var filed struct {
				TaskID string `json:"task_id"`
			}
			decode(t, f.send("POST", "/v1/tasks", f.owner,
				`{"repo": "acme/shop", "title": "Say when", "problem": "The README does not say when.", "template": "edit"}`).want(202), &filed)
			f.taskID = filed.TaskID
			defer f.tell()
			pushes := f.gh.Break(github.Fault{Operation: "git-receive-pack", Effect: github.Fail, Status: 503})
			var token struct{ Token string }
			decode(t, f.send("POST", "/v1/runners/enrollments", f.owner, `{}`).want(201), &token)
			run := f.keptBox(token.Token)
			stop := run(20 * time.Second) // until what fails is given up; what succeeds has the usual time
			waits := func(kind string) func() bool {
				return func() bool {
					s := f.task()
					return s.Status == "pending" && s.FailureKind != nil && *s.FailureKind == kind && len(s.Holds) == 1 &&
						s.Holds[0].Reason == task.HoldBackoff
				}
			}
			patience.Until(f.t, "the push is given up", waits("push_rejected"))
			if f.gh.Seen(pushes) < 2 || !strings.Contains(*f.task().Failure, "503") {
				t.Errorf("after %d pushes: %s", f.gh.Seen(pushes), *f.task().Failure)
			}
			f.gh.Mend()
			f.gh.Break(github.Fault{Operation: "git-upload-pack", Effect: github.Fail, Status: 502})
			f.send("POST", "/v1/tasks/"+f.taskID+"/retry-now", f.owner, "{}").want(200)
			patience.Until(f.t, "the checkout is given up", waits("checkout_failed"))
			if n := f.charged(); n != 0 {
				t.Errorf("%d tries are charged", n)
			}
			f.gh.Mend()
			stop()
			run(0)
			f.send("POST", "/v1/tasks/"+f.taskID+"/retry-now", f.owner, "{}").want(200)
			p := f.opened("the pull request is opened")
			readme, err := process.CommandContext(t.Context(), "git", "-C", f.shop.Dir(), "show", p.HeadSHA+":README.md").Output()
			if err != nil || string(readme) != "# Shop\nNow.\nNow.\n" {
				t.Errorf("the README is %q, %v", readme, err)
			}
		})
	}
}

// keptBox enrolls a box and returns what runs it, with a time after which a run gives up to
// save its work (0 is the usual one), until stop is called.
func (y *yard) keptBox(enrollment string) (run func(wrap time.Duration) (stop func())) {
	y.t.Helper()
	dir := y.t.TempDir()
	// Agents run as another user where the box is root, and must get through.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		y.t.Fatal(err)
	}
	identity, err := box.Enroll(y.t.Context(), y.URL(), enrollment, box.Info{Name: "kept", Version: "test", Slots: 2})
	if err == nil {
		err = identity.Save(dir)
	}
	if err != nil {
		y.t.Fatal(err)
	}
	return func(wrap time.Duration) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- box.Run(ctx, box.Config{
				DataDir: dir, Slots: 2, Version: "test", Logger: y.log.With("side", "box"),
				Timing: box.Timing{Renew: time.Second, Beat: 200 * time.Millisecond, Retry: 20 * time.Millisecond, Wrap: wrap},
			})
		}()
		stop = sync.OnceFunc(func() {
			cancel()
			if err := patience.Receive(y.t, "the end of the box", ended); err != nil {
				y.t.Error(err)
			}
		})
		y.t.Cleanup(stop)
		return stop
	}
}
