package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/proof/github"
)

// TestCheckRuns holds whose check runs are, and what they may hold.
func TestCheckRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	head := w.repo.Commit(w.ann, "feature", "x", map[string]string{"a": "b\n"})
	other := w.NewApp(github.NewApp{
		Name: "Other", Permissions: everything(), Events: allEvents, HookURL: w.inbox.URL, Secret: "hush",
	})
	theirs := other.Install(w.org).Token()
	made := w.do(201, "POST", "/repos/acme/shop/check-runs", object{"name": "mine", "head_sha": head, "external_id": "k1"})
	path := fmt.Sprintf("/repos/acme/shop/check-runs/%d", made.id())
	if made.at("status") != "queued" || made.at("external_id") != "k1" || made.at("app.id") != float64(w.app.ID) {
		t.Errorf("made %s", made.text)
	}
	w.as(theirs, 403, "PATCH", path, object{"status": "in_progress"})
	w.do(422, "POST", "/repos/acme/shop/check-runs", object{"name": "x", "head_sha": strings.Repeat("a", 40)})
	w.do(422, "PATCH", path, object{"status": "completed"})
	w.do(422, "PATCH", path, object{"output": object{"title": "t", "summary": strings.Repeat("x", 65536)}})
	note := object{"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
	notes := make([]object, 51)
	for i := range notes {
		notes[i] = note
	}
	w.do(422, "PATCH", path, object{"output": object{"title": "t", "summary": "s", "annotations": notes}})
	for range 2 {
		w.do(200, "PATCH", path, object{"output": object{"title": "t", "summary": "s", "annotations": notes[:50]}})
	}
	if n := w.do(200, "GET", path, nil).at("output.annotations_count"); n != 100.0 {
		t.Errorf("there are %v annotations", n)
	}
	w.do(200, "PATCH", path, object{"conclusion": "neutral"})
	if got := w.do(200, "GET", path, nil); got.at("status") != "completed" || got.at("completed_at") == nil {
		t.Errorf("ended as %s", got.text)
	}
	again := w.do(201, "POST", "/repos/acme/shop/check-runs", object{"name": "mine", "head_sha": head, "status": "in_progress"})
	w.as(theirs, 201, "POST", "/repos/acme/shop/check-runs", object{"name": "mine", "head_sha": head})
	list := "/repos/acme/shop/commits/feature/check-runs?check_name=mine"
	if n := w.do(200, "GET", list, nil).at("total_count"); n != 2.0 {
		t.Errorf("%v are the newest", n) // one of each App
	}
	if n := w.do(200, "GET", list+"&filter=all", nil).at("total_count"); n != 3.0 {
		t.Errorf("%v are there", n)
	}
	mine, _ := w.do(200, "GET", fmt.Sprintf("%s&app_id=%d", list, w.app.ID), nil).at("check_runs").([]any)
	if len(mine) != 1 || at(mine[0], "id") != float64(again.id()) {
		t.Errorf("of this App there are %v", mine)
	}
	w.take()
	w.repo.Rerequest(w.ann, made.id())
	got := w.take()
	if len(got) != 1 || got[0].target != fmt.Sprint(w.app.ID) || got[0].action != "rerequested" {
		t.Errorf("told of %v", got) // nobody but its own App
	}
}

// TestOldRuns holds that what is old cannot be run again or read.
func TestOldRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	run := w.repo.Run(w.ann, github.NewRun{SHA: w.repo.Head("main"), Branch: "main"})
	held := w.repo.Run(w.Person("eve"), github.NewRun{SHA: w.repo.Head("main"), Branch: "main", Held: true})
	job := run.Job("build")
	again := fmt.Sprintf("/repos/acme/shop/actions/runs/%d/rerun-failed-jobs", run.ID)
	logs := fmt.Sprintf("/repos/acme/shop/actions/jobs/%d/logs", job.ID)
	w.do(403, "POST", again, nil)
	w.do(404, "GET", logs, nil)
	job.End("success", "text")
	w.do(403, "POST", again, nil) // none has failed
	if c := w.do(200, "GET", fmt.Sprintf("/repos/acme/shop/actions/runs/%d", held.ID), nil).at("conclusion"); c != "action_required" {
		t.Errorf("a run that waits for a person is %v", c)
	}
	bad := w.repo.Run(w.ann, github.NewRun{SHA: w.repo.Head("main"), Branch: "main"})
	bad.Job("build").End("failure", "text")
	again = fmt.Sprintf("/repos/acme/shop/actions/runs/%d/rerun-failed-jobs", bad.ID)
	link := w.do(302, "GET", logs, nil).header.Get("Location")
	if a := w.ask("", "GET", link, nil); a.status != 200 || string(a.text) != "text" {
		t.Errorf("the log is %d %s", a.status, a.text)
	}
	if a := w.ask("", "GET", link, nil, "Range", "bytes=-2"); a.status != http.StatusPartialContent || string(a.text) != "xt" {
		t.Errorf("the end of the log is %d %s", a.status, a.text)
	}
	w.Advance(2 * time.Minute)
	if a := w.ask("", "GET", link, nil); a.status != 403 {
		t.Errorf("the link is good for ever: %d", a.status)
	}
	w.Advance(31 * 24 * time.Hour)
	w.do(403, "POST", again, nil)
	w.do(302, "GET", logs, nil)
	w.Advance(90 * 24 * time.Hour)
	w.do(410, "GET", logs, nil)
}

// TestOtherRules holds approvals of the last push, open conversations and drafts.
func TestOtherRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	p, path := w.opened()
	w.repo.Rules(w.ann, github.Ruleset{Reviews: 1, LastPush: true, ResolvedThreads: true})
	refused := func(want string) {
		t.Helper()
		if a := w.do(405, "PUT", path+"/merge", object{"sha": p.Head()}); !strings.Contains(string(a.text), want) {
			t.Errorf("refused with %s, want %s", a.text, want)
		}
	}
	w.repo.Commit(w.bob, "feature", "Bob's", map[string]string{"bob": "x\n"})
	p.Approve(w.bob) // who pushed last
	refused("approving review")
	cas := w.Person("cas")
	w.repo.Allow(cas, "write")
	remark := []github.NewComment{{Path: "cart.go", Line: 11, Body: "x"}}
	if _, err := p.Review(cas, github.NewReview{Event: "APPROVE", Comments: remark}); err != nil {
		t.Fatal(err)
	}
	refused("conversation must be resolved")
	p.Resolve(cas, p.Threads()[0][0].ID, true)
	if _, err := p.Review(w.bob, github.NewReview{Event: "REQUEST_CHANGES", Body: "no"}); err != nil {
		t.Fatal(err)
	}
	refused("Changes have been requested")
	for _, v := range p.Reviews() {
		if v.State == "CHANGES_REQUESTED" {
			p.Dismiss(w.ann, v.ID)
		}
	}
	p.Draft(w.ann, true)
	refused("still a draft")
	w.do(200, "GET", path, nil)
	if state := w.do(200, "GET", path, nil).at("mergeable_state"); state != "draft" {
		t.Errorf("the state is %v", state)
	}
	p.Draft(w.ann, false)
	w.do(200, "PUT", path+"/merge", object{"sha": p.Head()})
}

// TestHiddenFromGraphQL holds that a stranger finds nothing by names or ids.
func TestHiddenFromGraphQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	p, path := w.opened()
	node := w.do(200, "GET", path, nil).at("node_id")
	stranger := w.app.Install(w.Org("strangers")).Token()
	if _, wrong := w.graph(stranger, threadsQuery, object{"id": node, "after": nil}); !strings.HasPrefix(wrong, "NOT_FOUND") {
		t.Errorf("by id: %s", wrong)
	}
	where := object{"owner": "acme", "name": "shop", "number": p.Number}
	if _, wrong := w.graph(stranger, wideQuery, where); !strings.HasPrefix(wrong, "NOT_FOUND") {
		t.Errorf("by name: %s", wrong)
	}
	blind := w.narrowed(map[string]string{"issues": "read"})
	if _, wrong := w.graph(blind, wideQuery, where); !strings.HasPrefix(wrong, "FORBIDDEN") {
		t.Errorf("without the permission: %s", wrong)
	}
	w.inst.Suspend(w.ann, true)
	out, err := git(t, t.TempDir(), "ls-remote", withToken(w.repo.CloneURL(), w.inst.Token()))
	if err == nil || !strings.Contains(out, "403") {
		t.Errorf("git while suspended: %s", out)
	}
}
