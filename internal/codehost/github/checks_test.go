package github

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

func TestChecksOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	sha := w.pull("svc/a", map[string]string{"a.txt": "a\n"}).Head()
	other := w.peer.NewApp(peer.NewApp{Name: "Other CI", Permissions: map[string]string{"checks": "write"}})
	other.Install(w.org)
	w.repo.Check(other, sha, "lint", "failure")
	w.repo.Check(other, sha, "lint", "success")
	w.repo.Check(other, sha, "docs", "in_progress")
	w.repo.Status(w.bob, sha, "deploy", "pending")
	w.repo.Status(w.bob, sha, "deploy", "error")
	run := w.repo.Run(w.bob, peer.NewRun{Workflow: "CI", SHA: sha, Branch: "svc/a", Jobs: []string{"build", "test"}})
	run.Job("build").End("success", "ok\n")
	run.Job("test").End("failure", "no\n")

	set, tag, err := w.host.ChecksOf(ctx, w.shop, sha, "")
	if err != nil || tag == "" || set.SHA != sha {
		t.Fatalf("%+v %q, %v", set, tag, err)
	}
	got := map[string]string{}
	for _, c := range set.Checks {
		got[c.Name] = fmt.Sprintf("%s %q job=%v %s %d own=%v", c.State, c.End, c.Job != "", c.Workflow, c.Attempt, c.Own)
	}
	for name, want := range map[string]string{
		"lint":   "passed \"\" job=false  0 own=false",
		"docs":   "pending \"\" job=false  0 own=false",
		"deploy": "failed \"\" job=false  0 own=false",
		"build":  "passed \"\" job=true CI 1 own=false",
		"test":   "failed \"\" job=true CI 1 own=false",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if len(set.Checks) != 5 {
		t.Errorf("%d checks: %v", len(set.Checks), got)
	}
	_, _, err = w.host.ChecksOf(ctx, w.shop, sha, tag)
	wants(t, "with its tag", err, codehost.ErrNotModified)
	w.repo.Status(w.bob, sha, "deploy", "success")
	if set, _, err = w.host.ChecksOf(ctx, w.shop, sha, tag); err != nil || len(set.Checks) != 5 {
		t.Errorf("one of two has changed: %+v, %v", set, err)
	}
	for i := range 150 {
		w.repo.Check(other, sha, fmt.Sprintf("many %d", i), "success")
	}
	if set, tag, err = w.host.ChecksOf(ctx, w.shop, sha, ""); err != nil || len(set.Checks) != 155 || tag != "" {
		t.Errorf("%d checks in several pages, tag %q, %v", len(set.Checks), tag, err)
	}
}

func TestSetCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	sha := w.pull("svc/a", map[string]string{"a.txt": "a\n"}).Head()
	c := codehost.OwnCheck{
		Name: "yardmaster/review", SHA: sha, State: "queued", Title: "Waits", Summary: "For a box.", DetailsURL: "https://y/1",
	}
	w.lose("POST /repos/{owner}/{repo}/check-runs")
	id := twice(t, func() (string, error) { return w.host.SetCheck(ctx, w.shop, once1, c) })
	c.State, c.Title = "running", "Runs"
	if again, err := w.host.SetCheck(ctx, w.shop, once2, c); err != nil || again != id {
		t.Errorf("running: %s, %v", again, err)
	}
	c.State, c.Title, c.Summary = "failure", strings.Repeat("t", 300), strings.Repeat("s", 70000)
	for i := range 120 {
		c.Annotations = append(c.Annotations, codehost.Annotation{
			Path: "a.txt", StartLine: 1, Line: 1, Level: "warning", Title: "T", Message: fmt.Sprintf("note %d", i),
		})
	}
	w.peer.Break(peer.Fault{Operation: "PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}", Effect: peer.Lose, Times: 1})
	_, err := w.host.SetCheck(ctx, w.shop, once3, c)
	as[*codehost.BusyError](t, "a lost answer", err)
	for range 2 {
		if again, err := w.host.SetCheck(ctx, w.shop, once3, c); err != nil || again != id {
			t.Errorf("ended: %s, %v", again, err)
		}
	}
	checks := w.repo.Checks(sha)
	if len(checks) != 1 || checks[0].Conclusion != "failure" || len(checks[0].Annotations) != 120 || checks[0].ExternalID != string(once3) {
		t.Errorf("%d checks, %d annotations, %+v", len(checks), len(checks[0].Annotations), checks[0].ExternalID)
	}
	c.State, c.Annotations = "queued", nil
	next, err := w.host.SetCheck(ctx, w.shop, "0199a000-0000-7000-8000-000000000004", c)
	if err != nil || next == id || len(w.repo.Checks(sha)) != 2 {
		t.Errorf("begun anew: %s, %v", next, err)
	}
	set, _, err := w.host.ChecksOf(ctx, w.shop, sha, "")
	if err != nil || len(set.Checks) != 1 || set.Checks[0].ID != next || !set.Checks[0].Own {
		t.Errorf("the checks are %+v, %v", set, err)
	}
	c.SHA = strings.Repeat("1", 40)
	_, err = w.host.SetCheck(ctx, w.shop, once1, c)
	wants(t, "no commit", err, codehost.ErrNotFound)
}

func TestRerunAndLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	sha := w.pull("svc/a", map[string]string{"a.txt": "a\n"}).Head()
	run := w.repo.Run(w.bob, peer.NewRun{SHA: sha, Branch: "svc/a", Jobs: []string{"build", "test", "slow"}})
	run.Job("build").End("success", "ok\n")
	log := strings.Repeat("2026-05-04T10:11:12.1234567Z a line of the log\n", 1000) + "the end\n"
	run.Job("test").End("failure", log)
	byName := func(name string) string {
		set, _, err := w.host.ChecksOf(ctx, w.shop, sha, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range set.Checks {
			if c.Name == name {
				return c.ID
			}
		}
		t.Fatal("no check " + name)
		return ""
	}
	id := byName("test")
	for _, last := range []int64{0, 1000} {
		r, err := w.host.CheckLog(ctx, w.shop, id, last)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r)
		r.Close()
		cut := len(text) <= 1000 && len(text) > 800 && strings.HasPrefix(string(text), "2026-")
		if last == 0 && string(text) != log || last != 0 && !cut || !strings.HasSuffix(string(text), "the end\n") {
			t.Errorf("of %d bytes: %d, %.60q", last, len(text), text)
		}
	}
	run.Job("slow").Start()
	as[*codehost.BusyError](t, "before the run has ended", w.host.RerunFailed(ctx, w.shop, once1, []string{id}))
	run.Job("slow").End("success", "ok\n")
	w.lose("POST /repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs")
	twice(t, func() (struct{}, error) { return struct{}{}, w.host.RerunFailed(ctx, w.shop, once1, []string{id}) })
	if run.Attempt() != 2 {
		t.Errorf("attempt %d", run.Attempt())
	}
	run.Job("test").End("success", "ok\n")
	if err := w.host.RerunFailed(ctx, w.shop, once1, []string{id}); err != nil || run.Attempt() != 2 {
		t.Errorf("after the next attempt: %v, attempt %d", err, run.Attempt())
	}
	other := w.peer.NewApp(peer.NewApp{Name: "Other CI", Permissions: map[string]string{"checks": "write"}})
	other.Install(w.org)
	w.repo.Check(other, sha, "lint", "failure")
	w.repo.Status(w.bob, sha, "deploy", "failure")
	for _, name := range []string{"lint", "deploy"} {
		wants(t, name, w.host.RerunFailed(ctx, w.shop, once2, []string{byName(name)}), codehost.ErrNotRerunnable)
		_, err := w.host.CheckLog(ctx, w.shop, byName(name), 0)
		wants(t, "the log of "+name, err, codehost.ErrNoLog)
	}
}

// A workflow of a first-time contributor waits for a person, and has no check run: it is
// shown until somebody lets it run.
func TestHeldWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	sha := w.pull("svc/a", map[string]string{"a.txt": "a\n"}).Head()
	set, tag, err := w.host.ChecksOf(ctx, w.shop, sha, "")
	if err != nil || len(set.Checks) != 0 || tag == "" {
		t.Fatalf("%+v %q, %v", set, tag, err)
	}
	for range 2 {
		w.repo.Run(w.bob, peer.NewRun{Workflow: "CI", SHA: sha, Branch: "svc/a", Held: true})
	}
	set, tag, err = w.host.ChecksOf(ctx, w.shop, sha, tag)
	if err != nil || len(set.Checks) != 1 {
		t.Fatalf("%+v, %v", set, err)
	}
	c := set.Checks[0]
	if c.Name != "CI" || c.State != codehost.CheckFailed || c.End != codehost.EndHeld || c.Job != "" || c.Own || c.URL == "" {
		t.Errorf("%+v", c)
	}
	_, _, err = w.host.ChecksOf(ctx, w.shop, sha, tag)
	wants(t, "with its tag", err, codehost.ErrNotModified)
}
