package github_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"yardmaster/internal/proof/github"
)

// TestEveryOperation calls each operation at least once; the judge holds each exchange
// and each delivery against GitHub's description.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	repo := "/repos/acme/shop"
	head := w.repo.Commit(w.ann, "feature", "A feature", map[string]string{"cart.go": lines(1, 10) + "changed\n" + lines(12, 30)})
	w.callApp(repo)
	w.callContent(repo, head)
	w.callPulls(repo, head)
	w.callChecks(repo, head)
	w.callIssues(repo)
	w.callHooks()
	w.as(w.ann.PersonalToken(github.NewToken{}), 200, "GET", "/user", nil)
	w.do(201, "POST", "/orgs/acme/repos", object{"name": "new", "private": true, "auto_init": true})
	w.do(422, "POST", "/orgs/acme/repos", object{"name": "new"})
	w.do(204, "DELETE", "/installation/token", nil)
	w.byApp(204, "DELETE", fmt.Sprintf("/app/installations/%d", w.inst.ID), nil)
	w.take()
	for _, operation := range w.Uncalled() {
		t.Errorf("%s was not called", operation)
	}
}

func (w *world) callApp(repo string) {
	to, err := w.Confirm("/organizations/acme/settings/apps/new", "S", `{"name": "Another", "url": "https://example.com/",
		"hook_attributes": {"url": "https://example.com/hook"}, "redirect_url": "https://example.com/back?a=b",
		"default_permissions": {"contents": "read"}, "default_events": ["push"]}`)
	if err != nil {
		w.t.Fatal(err)
	}
	back, err := url.Parse(to)
	if err != nil || back.Query().Get("state") != "S" || back.Query().Get("a") != "b" {
		w.t.Fatalf("redirected to %s: %v", to, err)
	}
	code := back.Query().Get("code")
	made := w.as("", 201, "POST", "/app-manifests/"+code+"/conversions", nil)
	if pem, _ := made.at("pem").(string); !strings.HasPrefix(pem, "-----BEGIN RSA PRIVATE KEY-----") {
		w.t.Errorf("converted to %s", made.text)
	}
	w.as("", 404, "POST", "/app-manifests/"+code+"/conversions", nil)

	w.as("", 200, "GET", "/meta", nil)
	w.do(200, "GET", "/rate_limit", nil)
	w.do(200, "GET", "/users/bob", nil)
	w.byApp(200, "GET", "/app", nil)
	if all := w.byApp(200, "GET", "/app/installations", nil).list(); len(all) != 1 {
		w.t.Errorf("there are %d installations", len(all))
	}
	at := fmt.Sprintf("/app/installations/%d", w.inst.ID)
	w.byApp(200, "GET", at, nil)
	w.byApp(404, "GET", "/app/installations/4", nil)
	w.byApp(201, "POST", at+"/access_tokens", object{"repositories": []string{"shop"}})
	w.byApp(200, "GET", repo+"/installation", nil)
	w.byApp(200, "GET", "/app/hook/config", nil)
	w.byApp(200, "PATCH", "/app/hook/config", object{"url": w.inbox.URL})
	if n := w.do(200, "GET", "/installation/repositories", nil).at("total_count"); n != 1.0 {
		w.t.Errorf("there are %v repositories", n)
	}
}

func (w *world) callContent(repo, head string) {
	w.do(200, "GET", repo, nil)
	w.do(200, "GET", fmt.Sprintf("/repositories/%d", w.repo.ID), nil)
	w.do(200, "PATCH", repo, object{"description": "A shop"})
	w.do(200, "GET", repo+"/branches?per_page=1", nil)
	w.repo.Protect("main", github.Protection{Checks: []github.Required{{Name: "build"}, {Name: "lint", App: w.app}}, Strict: true})
	branch := w.do(200, "GET", repo+"/branches/main", nil)
	if contexts := fmt.Sprint(branch.at("protection.required_status_checks.contexts")); contexts != "[build lint]" {
		w.t.Errorf("the contexts are %s", contexts)
	}
	w.repo.Rules(w.ann, github.Ruleset{
		Checks: []github.Required{{Name: "build", App: w.app}}, Reviews: 1, NoDeletion: true, Queue: &github.QueueRule{}, Linear: true,
		NoForcePush: true,
	})
	if rules := w.do(200, "GET", repo+"/rules/branches/main", nil).list(); len(rules) != 6 {
		w.t.Errorf("there are %d rules", len(rules))
	}
	w.repo.ClearRules()
	w.do(200, "GET", repo+"/git/ref/heads/feature", nil)
	w.do(404, "GET", repo+"/git/ref/heads/nothing", nil)
	w.do(201, "POST", repo+"/git/refs", object{"ref": "refs/heads/side/way", "sha": head})
	w.do(200, "GET", repo+"/branches/side%2Fway", nil)
	w.do(422, "PATCH", repo+"/git/refs/heads/side/way", object{"sha": w.repo.Head("main")})
	w.do(200, "PATCH", repo+"/git/refs/heads/side/way", object{"sha": w.repo.Head("main"), "force": true})
	w.do(204, "DELETE", repo+"/git/refs/heads/side/way", nil)
	w.do(200, "GET", repo+"/commits?sha=feature", nil)
	w.do(200, "GET", repo+"/commits/feature", nil)
	compared := w.do(200, "GET", repo+"/compare/main...feature", nil)
	if compared.at("status") != "ahead" || compared.at("ahead_by") != 1.0 {
		w.t.Errorf("compared %s", compared.text)
	}
	w.do(200, "GET", repo+"/contents/docs", nil)
	if n := len(w.do(200, "GET", repo+"/contents/", nil).list()); n != 3 {
		w.t.Errorf("there are %d files", n)
	}
	file := w.do(200, "GET", repo+"/contents/docs/a%20b.md?ref=main", nil)
	if text, _ := base64.StdEncoding.DecodeString(strings.ReplaceAll(file.at("content").(string), "\n", "")); string(text) != "text\n" {
		w.t.Errorf("read %q", text)
	}
	w.do(404, "GET", repo+"/contents/nothing", nil)
	w.repo.Commit(w.ann, "old", "Old", map[string]string{"old": "x\n"})
	w.do(201, "POST", repo+"/merges", object{"base": "old", "head": "feature"})
	w.do(204, "POST", repo+"/merges", object{"base": "old", "head": "feature"})
	if role := w.do(200, "GET", repo+"/collaborators/bob/permission", nil).at("permission"); role != "write" {
		w.t.Errorf("bob has %v", role)
	}
}

func (w *world) callPulls(repo, head string) {
	opened := w.do(201, "POST", repo+"/pulls", object{"title": "T", "head": "acme:feature", "base": "main", "draft": true})
	again := w.do(422, "POST", repo+"/pulls", object{"title": "T", "head": "feature", "base": "main"})
	if !strings.Contains(string(again.text), "A pull request already exists for acme:feature.") {
		w.t.Errorf("refused with %s", again.text)
	}
	w.do(422, "POST", repo+"/pulls", object{"title": "T", "head": "main", "base": "main"})
	if n := len(w.do(200, "GET", repo+"/pulls?head=acme:feature&state=all", nil).list()); n != 1 {
		w.t.Errorf("%d pull requests are listed", n)
	}
	pull := fmt.Sprintf("%s/pulls/%v", repo, opened.at("number"))
	w.do(405, "PUT", pull+"/merge", object{"sha": head})
	w.do(200, "PATCH", pull, object{"title": "Title", "body": "Fixes #12"})
	w.do(200, "PATCH", pull, object{"state": "closed"})
	w.do(200, "PATCH", pull, object{"state": "open"})
	w.do(200, "GET", pull, nil)
	files := w.do(200, "GET", pull+"/files", nil).list()
	if len(files) != 1 || files[0]["patch"] != "@@ -8,7 +8,7 @@ line 7\n line 8\n line 9\n line 10\n-line 11\n+changed\n line 12\n line 13\n line 14" {
		w.t.Errorf("the files are %v", files)
	}
	w.do(200, "GET", pull+"/commits", nil)
	w.do(404, "GET", pull+"/merge", nil)
	w.do(201, "POST", pull+"/requested_reviewers", object{"reviewers": []string{"bob"}})
	w.do(200, "GET", pull+"/requested_reviewers", nil)
	w.do(200, "DELETE", pull+"/requested_reviewers", object{"reviewers": []string{"bob"}})
	review := w.do(200, "POST", pull+"/reviews", object{"event": "COMMENT", "body": "b", "commit_id": head, "comments": []object{
		{"path": "cart.go", "line": 11, "side": "RIGHT", "body": "Why?"}, {"path": "cart.go", "line": 11, "side": "LEFT", "body": "This"},
		{"path": "cart.go", "start_line": 9, "line": 11, "side": "RIGHT", "body": "Range"},
	}})
	w.do(200, "GET", pull+"/reviews", nil)
	w.do(200, "GET", fmt.Sprintf("%s/reviews/%d", pull, review.id()), nil)
	said := w.do(200, "GET", fmt.Sprintf("%s/reviews/%d/comments", pull, review.id()), nil).list()
	if len(said) != 3 {
		w.t.Fatalf("the review has %d comments", len(said))
	}
	w.do(201, "POST", pull+"/comments", object{"path": "cart.go", "subject_type": "file", "body": "All", "commit_id": head})
	w.do(422, "POST", pull+"/comments", object{"path": "cart.go", "line": 20, "body": "no", "commit_id": head})
	w.do(201, "POST", fmt.Sprintf("%s/comments/%.0f/replies", pull, said[0]["id"]), object{"body": "Because"})
	w.do(201, "POST", pull+"/comments", object{"in_reply_to": said[0]["id"], "body": "So there"})
	if n := len(w.do(200, "GET", pull+"/comments", nil).list()); n != 6 {
		w.t.Errorf("%d comments are listed", n)
	}
	w.do(200, "GET", fmt.Sprintf("%s/pulls/comments/%.0f", repo, said[0]["id"]), nil)
	w.do(200, "PATCH", fmt.Sprintf("%s/pulls/comments/%.0f", repo, said[0]["id"]), object{"body": "Why so?"})
	node := object{"id": opened.at("node_id")}
	for _, mutation := range []string{"markPullRequestReadyForReview", "convertPullRequestToDraft", "markPullRequestReadyForReview"} {
		text := `mutation($id: ID!) { ` + mutation + `(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`
		if _, wrong := w.graph(w.inst.Token(), text, node); wrong != "" {
			w.t.Errorf("%s: %s", mutation, wrong)
		}
	}
	w.do(200, "PUT", pull+"/merge", object{"sha": head, "merge_method": "squash"})
	w.do(204, "GET", pull+"/merge", nil)
}

func (w *world) callChecks(repo, head string) {
	made := w.do(201, "POST", repo+"/check-runs", object{
		"name": "yardmaster/check", "head_sha": head, "status": "in_progress", "external_id": "k",
	})
	check := fmt.Sprintf("%s/check-runs/%d", repo, made.id())
	w.do(200, "PATCH", check, object{"conclusion": "success", "output": object{"title": "t", "summary": "s", "annotations": []object{
		{"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"},
	}}})
	w.do(200, "GET", check, nil)
	w.do(201, "POST", check+"/rerequest", nil)
	w.do(200, "PATCH", check, object{"actions": []object{{"label": "Fix", "description": "Fix it", "identifier": "fix"}}})
	w.repo.Press(w.ann, made.id(), "fix")
	w.repo.Status(w.ann, head, "legacy", "pending")
	run := w.repo.Run(w.ann, github.NewRun{SHA: head, Branch: "feature", Event: "pull_request", Jobs: []string{"build", "test"}})
	run.Job("build").End("success", "fine\n")
	failed := run.Job("test")
	failed.End("failure", "--- FAIL: TestLease (2.01s)\n")
	w.do(200, "GET", repo+"/commits/"+head+"/check-runs?filter=latest&per_page=100", nil)
	w.do(200, "GET", repo+"/commits/"+head+"/check-suites", nil)
	w.do(200, "GET", repo+"/commits/"+head+"/status", nil)
	w.do(200, "GET", repo+"/commits/"+head+"/pulls", nil)
	w.do(200, "GET", repo+"/actions/runs?head_sha="+head, nil)
	at := fmt.Sprintf("%s/actions/runs/%d", repo, run.ID)
	if got := w.do(200, "GET", at, nil).at("conclusion"); got != "failure" {
		w.t.Errorf("the run is %v", got)
	}
	w.do(200, "GET", at+"/jobs", nil)
	job := fmt.Sprintf("%s/actions/jobs/%d", repo, failed.ID)
	w.do(200, "GET", job, nil)
	w.log(job, "--- FAIL: TestLease (2.01s)\n")
	w.do(201, "POST", at+"/rerun-failed-jobs", nil)
	w.do(403, "POST", at+"/rerun-failed-jobs", nil)
	if next := run.Job("test"); run.Attempt() != 2 || next.ID == failed.ID {
		w.t.Error("the second attempt has no job of its own")
	}
	run.Job("test").End("success", "ok\n")
	if got := w.do(200, "GET", at, nil).at("conclusion"); got != "success" {
		w.t.Errorf("the second attempt is %v", got)
	}
	w.do(201, "POST", fmt.Sprintf("%s/actions/jobs/%d/rerun", repo, run.Job("test").ID), nil)
	w.repo.Rerequest(w.ann, made.id())
	w.repo.RerequestSuite(w.ann, w.app, head)
}

// log reads the log of a job: a redirect to a host that wants no token.
func (w *world) log(job, want string) {
	w.t.Helper()
	to := w.do(302, "GET", job+"/logs", nil).header.Get("Location")
	if strings.HasPrefix(to, w.API) {
		w.t.Errorf("the log is at %s", to)
	}
	got, err := http.Get(to)
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	if text, _ := io.ReadAll(got.Body); string(text) != want {
		w.t.Errorf("the log is %q", text)
	}
	if a := w.ask(w.inst.Token(), "GET", to, nil); a.status != 400 {
		w.t.Errorf("with the token the log answers %d", a.status)
	}
}

func (w *world) callIssues(repo string) {
	i := w.repo.OpenIssue(w.bob, "Broken", "It is", "bug")
	m := w.repo.NewMilestone(w.ann, "v1")
	w.do(201, "POST", repo+"/issues", object{"title": "New", "body": "b", "labels": []string{"bug"}})
	issue := fmt.Sprintf("%s/issues/%d", repo, i.Number)
	if n := len(w.do(200, "GET", repo+"/issues?state=all&sort=updated&per_page=1", nil).list()); n != 1 {
		w.t.Errorf("%d issues are listed", n)
	}
	w.do(200, "GET", issue, nil)
	w.do(200, "PATCH", issue, object{"title": "Still broken", "milestone": m.Number, "state": "closed", "state_reason": "not_planned"})
	w.do(200, "PATCH", issue, object{"milestone": nil, "state": "open"})
	comment := w.do(201, "POST", issue+"/comments", object{"body": "Hello"})
	at := fmt.Sprintf("%s/issues/comments/%d", repo, comment.id())
	w.do(200, "GET", issue+"/comments", nil)
	w.do(200, "GET", at, nil)
	w.do(200, "PATCH", at, object{"body": "Hello again"})
	w.do(204, "DELETE", at, nil)
	w.do(404, "PATCH", at, object{"body": "gone"})
	w.do(422, "POST", issue+"/comments", object{"body": strings.Repeat("x", 65537)})
	w.do(200, "GET", issue+"/labels", nil)
	w.do(200, "POST", issue+"/labels", object{"labels": []string{"fresh"}})
	w.do(200, "DELETE", issue+"/labels/bug", nil)
	w.do(404, "DELETE", issue+"/labels/bug", nil)
	w.do(200, "PUT", issue+"/labels", []string{"bug"})
	w.do(200, "GET", repo+"/labels", nil)
	w.do(200, "GET", repo+"/milestones?state=all", nil)
	milestone := fmt.Sprintf("%s/milestones/%d", repo, m.Number)
	w.do(200, "GET", milestone, nil)
	w.do(200, "PATCH", milestone, object{"state": "closed", "title": "v1.0"})
	w.do(200, "PATCH", milestone, object{"state": "open"})
	i.Delete(w.ann)
	w.do(410, "GET", issue, nil)
}

func (w *world) callHooks() {
	w.take()
	all := w.byApp(200, "GET", "/app/hook/deliveries?per_page=2", nil)
	if next := all.header.Get("Link"); !strings.Contains(next, "cursor=") {
		w.t.Errorf("the next page is %q", next)
	}
	at := fmt.Sprintf("/app/hook/deliveries/%.0f", all.list()[0]["id"])
	w.byApp(200, "GET", at, nil)
	w.byApp(202, "POST", at+"/attempts", nil)
}
