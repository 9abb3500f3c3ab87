package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/proof/github"
)

// TestNames holds what a repository answers to by an old name, to strangers, when it is
// archived and when it is gone.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	stranger := w.app.Install(w.Org("strangers")).Token()
	w.as(stranger, 404, "GET", "/repos/acme/shop", nil)
	w.as("", 404, "GET", "/repos/acme/shop", nil)
	w.take()
	w.repo.Rename(w.ann, "store")
	if got := w.told(); got != "repository renamed" {
		t.Errorf("told of %s", got)
	}
	moved := w.do(301, "GET", "/repos/acme/shop/issues?state=all", nil)
	want := fmt.Sprintf("%s/repositories/%d/issues?state=all", w.API, w.repo.ID)
	if got := moved.header.Get("Location"); got != want {
		t.Errorf("redirected to %s, want %s", got, want)
	}
	w.do(200, "GET", want, nil)
	w.do(307, "POST", "/repos/acme/shop/pulls", object{"title": "x", "head": "feature", "base": "main"})
	w.do(307, "PATCH", "/repos/acme/shop", object{"description": "x"})
	other := newWorld(t, github.Options{MovedWrites: http.StatusMovedPermanently})
	other.repo.Rename(other.ann, "store")
	other.do(301, "POST", "/repos/acme/shop/pulls", object{"title": "x", "head": "feature", "base": "main"})
	w.as(stranger, 404, "GET", "/repos/acme/shop", nil)
	if out, err := git(t, t.TempDir(), "ls-remote", withToken(w.Web+"/acme/shop.git", w.inst.Token())); err != nil {
		t.Errorf("git by the old name: %s", out)
	}
	if taken := w.Repo("acme/shop", github.NewRepo{}); taken.ID == w.repo.ID {
		t.Error("the name is still taken")
	}
	w.do(200, "GET", "/repos/acme/shop", nil)

	w.repo.Archive(w.ann, true)
	w.do(200, "GET", "/repos/acme/store", nil)
	a := w.do(403, "POST", "/repos/acme/store/check-runs", object{"name": "x", "head_sha": w.repo.Head("main")})
	if !strings.Contains(string(a.text), "archived") {
		t.Errorf("refused with %s", a.text)
	}
	w.repo.Archive(w.ann, false)

	w.take()
	w.org.Rename("acme-inc")
	w.do(301, "GET", "/repos/acme/store", nil)
	w.do(200, "GET", "/repos/acme-inc/store", nil)
	if got := w.told(); got != "installation_target renamed" {
		t.Errorf("told of %s", got)
	}
	w.org.Rename("acme")
	w.repo.Transfer(w.ann, w.Org("others"))
	w.do(404, "GET", "/repos/acme/store", nil)
	w.repo.Hide(w.ann, false)
	w.do(301, "GET", "/repos/acme/store", nil)
	w.do(200, "GET", "/repos/others/store", nil)
	w.do(403, "POST", "/repos/others/store/check-runs", object{"name": "x", "head_sha": w.repo.Head("main")})
	w.repo.Delete(w.ann)
	w.do(404, "GET", "/repos/others/store", nil)
}

// TestForks holds that a pull request of a fork survives the fork, without head.repo.
func TestForks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	w.repo.Hide(w.ann, false)
	eve := w.Person("eve")
	fork := w.repo.Fork(eve)
	head := fork.Commit(eve, "idea", "An idea", map[string]string{"idea.md": "text\n"})
	w.take()
	p := w.repo.OpenPull(eve, github.NewPull{Head: "eve:idea"})
	if p.Head() != head {
		t.Errorf("the head is %s", p.Head())
	}
	path := fmt.Sprintf("/repos/acme/shop/pulls/%d", p.Number)
	if full := w.do(200, "GET", path, nil).at("head.repo.full_name"); full != "eve/shop" {
		t.Errorf("head.repo is %v", full)
	}
	head = fork.Commit(eve, "idea", "More", map[string]string{"idea.md": "more\n"})
	if p.Head() != head {
		t.Errorf("the head did not move to %s", head)
	}
	checks := w.do(201, "POST", "/repos/acme/shop/check-runs", object{"name": "x", "head_sha": head})
	if pulls, _ := checks.at("pull_requests").([]any); len(pulls) != 0 {
		t.Errorf("a check lists the fork's pull request: %v", pulls)
	}
	fork.Delete(eve)
	gone := w.do(200, "GET", path, nil)
	if gone.at("head.repo") != nil || gone.at("head.sha") != head {
		t.Errorf("the head is %v", gone.at("head"))
	}
	w.do(200, "GET", "/repos/acme/shop/pulls", nil)
	w.do(200, "PATCH", path, object{"title": "Another"})
	if got := w.told(); !strings.HasPrefix(got, "pull_request opened, pull_request synchronize") {
		t.Errorf("told of %s", got)
	}
	w.do(http.StatusOK, "PUT", path+"/merge", object{"sha": head})
}

// TestPermissions holds that every operation asks for its permission: with all but
// that one it is refused.
func TestPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	head := w.repo.Commit(w.ann, "feature", "A feature", map[string]string{"new.go": "x\n"})
	p := w.repo.OpenPull(w.ann, github.NewPull{Head: "feature"})
	i := w.repo.OpenIssue(w.ann, "An issue", "")
	run := w.repo.Run(w.ann, github.NewRun{SHA: head, Branch: "feature"})
	run.Job("build").End("failure", "log")
	check := w.repo.Check(w.app, head, "x", "success")
	comment := i.Comment(w.ann, "text")
	on := p.Comment(w.ann, "text")
	number := map[string]any{
		"{pull_number}": p.Number, "{issue_number}": i.Number, "{run_id}": run.ID, "{job_id}": run.Job("build").ID,
		"{check_run_id}": check.ID, "{comment_id}": comment,
	}
	for _, c := range []struct{ need, operation string }{
		{"contents=read", "GET /contents/README.md"}, {"contents=read", "GET /branches/main"}, {"contents=read", "GET /commits/main"},
		{"contents=read", "GET /git/ref/heads/main"}, {"contents=read", "GET /compare/main...feature"},
		{"contents=write", "DELETE /git/refs/heads/feature"}, {"contents=write", "POST /merges"},
		{"contents=write", "PUT /pulls/{pull_number}/merge"}, {"administration=write", "PATCH "},
		{"pull_requests=read", "GET /pulls"}, {"pull_requests=read", "GET /pulls/{pull_number}"},
		{"pull_requests=read", "GET /pulls/{pull_number}/files"}, {"pull_requests=read", "GET /pulls/{pull_number}/reviews"},
		{"pull_requests=write", "POST /pulls"}, {"pull_requests=write", "PATCH /pulls/{pull_number}"},
		{"pull_requests=write", "POST /pulls/{pull_number}/reviews"}, {"pull_requests=write", "POST /pulls/{pull_number}/comments"},
		{"issues=read", "GET /issues/{issue_number}"}, {"issues=write", "PATCH /issues/{issue_number}"},
		{"issues=write", "POST /issues/{issue_number}/comments"}, {"issues=write", "PATCH /issues/comments/{comment_id}"},
		{"issues=write", "PUT /issues/{issue_number}/labels"},
		{"checks=read", "GET /commits/feature/check-runs"}, {"checks=write", "POST /check-runs"},
		{"checks=write", "PATCH /check-runs/{check_run_id}"}, {"statuses=read", "GET /commits/feature/status"},
		{"actions=read", "GET /actions/runs/{run_id}/jobs"}, {"actions=read", "GET /actions/jobs/{job_id}/logs"},
		{"actions=write", "POST /actions/runs/{run_id}/rerun-failed-jobs"}, {"actions=write", "POST /actions/jobs/{job_id}/rerun"},
	} {
		less := everything()
		name, level, _ := strings.Cut(c.need, "=")
		delete(less, name)
		if level == "write" && name != "administration" {
			less[name] = "read"
		}
		method, path, _ := strings.Cut(c.operation, " ")
		for from, to := range number {
			path = strings.ReplaceAll(path, from, fmt.Sprint(to))
		}
		a := w.as(w.narrowed(less), 403, method, "/repos/acme/shop"+path, object{})
		if !strings.Contains(string(a.text), "Resource not accessible by integration") {
			t.Errorf("%s was refused with %s", c.operation, a.text)
		}
		var body any
		if method != "GET" && method != "DELETE" {
			body = object{"status": "in_progress", "labels": []string{"x"}}
		}
		if got := w.ask(w.inst.Token(), method, "/repos/acme/shop"+path, body); got.status == 403 && c.need != "actions=write" {
			t.Errorf("%s is refused with all permissions: %s", c.operation, got.text)
		}
		if level == "write" && method != "GET" {
			// What the call has done must not be in the way of the next.
			if w.repo.Head("feature") == "" {
				w.repo.Push(w.ann, "feature", head)
				p.Reopen(w.ann)
			}
		}
	}
	// A pull request is an issue that either permission is enough for.
	path := fmt.Sprintf("/repos/acme/shop/issues/comments/%d", on)
	w.as(w.narrowed(map[string]string{"pull_requests": "write"}), 200, "PATCH", path, object{"body": "a"})
	w.as(w.narrowed(map[string]string{"issues": "write"}), 200, "PATCH", path, object{"body": "b"})
	w.as(w.narrowed(map[string]string{"checks": "write"}), 403, "PATCH", path, object{"body": "c"})
	w.repo.Hide(w.ann, false) // what is public may be read by all
	w.as(w.narrowed(map[string]string{"checks": "write"}), 200, "GET", path, nil)
	w.as("", 200, "GET", path, nil)
}

// TestAssociations holds that a private membership looks like none, and that
// permissions are asked for instead.
func TestAssociations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	more := everything()
	more["members"] = "read"
	w.app.Ask(more, append([]string{"member"}, allEvents...))
	w.inst.Accept(w.ann)
	shy, loud := w.Person("shy"), w.Person("loud")
	shy.Join(w.org, "member", true)
	loud.Join(w.org, "member", false)
	w.take()
	for _, a := range []*github.Account{shy, loud} {
		w.repo.Allow(a, "read")
		w.repo.Allow(a, "write")
	}
	for who, want := range map[*github.Account]string{shy: "NONE", loud: "MEMBER", w.bob: "COLLABORATOR", w.Person("eve"): "NONE"} {
		i := w.repo.OpenIssue(who, "x", "")
		got := w.do(200, "GET", fmt.Sprintf("/repos/acme/shop/issues/%d", i.Number), nil).at("author_association")
		if got != want {
			t.Errorf("%s is %v, want %s", who.Login, got, want)
		}
	}
	for login, want := range map[string]string{"shy": "write", "ann": "admin", "eve": "none"} {
		if got := w.do(200, "GET", "/repos/acme/shop/collaborators/"+login+"/permission", nil).at("permission"); got != want {
			t.Errorf("%s may %v, want %s", login, got, want)
		}
	}
	w.repo.Allow(shy, "")
	if got := w.told(); !strings.HasPrefix(got, "member added, member edited, member added") || !strings.HasSuffix(got, "member removed") {
		t.Errorf("told of %s", got)
	}
}

// TestPersonalTokens holds fine-grained tokens of people.
func TestPersonalTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	token := w.bob.PersonalToken(github.NewToken{
		Repos: []*github.Repo{w.repo}, Permissions: map[string]string{"contents": "write", "issues": "read"}, Expires: 48 * 3600 * 1e9,
	})
	a := w.as(token, 200, "GET", "/user", nil)
	if a.at("login") != "bob" || !strings.HasSuffix(a.header.Get("github-authentication-token-expiration"), "UTC") {
		t.Errorf("answered %v, %v", a.header, a.at("login"))
	}
	if p := w.as(token, 200, "GET", "/repos/acme/shop", nil).at("permissions.push"); p != true {
		t.Errorf("push is %v", p)
	}
	w.as(token, 403, "POST", "/repos/acme/shop/issues/1/labels", object{"labels": []string{"x"}})
	if out, err := git(t, t.TempDir(), "ls-remote", withToken(w.repo.CloneURL(), token)); err != nil {
		t.Error(out)
	}
	w.Advance(48 * 3600 * 1e9)
	w.as(token, 401, "GET", "/user", nil)
	w.as(w.inst.Token(), 403, "GET", "/user", nil)
}
