package github_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/proof/github"
)

// TestPullRequestFromPushToMerge walks the way that most work takes.
func TestPullRequestFromPushToMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	if got := w.told(); got != "installation created" {
		t.Fatalf("told of %s", got)
	}
	dir := t.TempDir()
	remote := withToken(w.repo.CloneURL(), w.inst.Token())
	mustGit(t, dir, "clone", "--quiet", remote, "work")
	work := dir + "/work"
	mustGit(t, work, "switch", "--quiet", "-c", "feature")
	if out, err := git(t, work, "commit", "--quiet", "--allow-empty", "-m", "nothing yet"); err != nil {
		t.Fatal(out)
	}
	mustGit(t, work, "push", "--quiet", "origin", "feature")
	if got := w.told(); got != "push, create, check_suite requested" {
		t.Errorf("told of %s", got)
	}
	pull := w.do(201, "POST", "/repos/acme/shop/pulls", object{"title": "A feature", "head": "feature", "base": "main", "body": "text"})
	head := mustGit(t, work, "rev-parse", "HEAD")
	if pull.at("mergeable") != nil || pull.at("head.sha") != head || pull.at("user.login") != "yard-master[bot]" {
		t.Errorf("opened %s", pull.text)
	}
	number := fmt.Sprint(pull.at("number"))
	path := "/repos/acme/shop/pulls/" + number
	if first := w.do(200, "GET", path, nil).at("mergeable"); first != nil {
		t.Errorf("mergeable is %v at the first read", first)
	}
	if second := w.do(200, "GET", path, nil).at("mergeable"); second != true {
		t.Errorf("mergeable is %v at the second read", second)
	}
	w.do(409, "PUT", path+"/merge", object{"sha": strings.Repeat("a", 40)})
	merged := w.do(200, "PUT", path+"/merge", object{"sha": pull.at("head.sha"), "merge_method": "merge"})
	if got := w.repo.Head("main"); got != merged.at("sha") {
		t.Errorf("main is at %s, merged was %v", got, merged.at("sha"))
	}
	w.do(405, "PUT", path+"/merge", object{"sha": pull.at("head.sha")})
	if got := w.told(); got != "pull_request opened, pull_request closed, push, check_suite requested" {
		t.Errorf("told of %s", got)
	}
}

// TestTokens holds the forms, the ends and the narrowing of credentials.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	other := w.Repo("acme/other", github.NewRepo{Private: true, Files: map[string]string{"a": "b\n"}})
	mint := fmt.Sprintf("/app/installations/%d/access_tokens", w.inst.ID)
	minted := w.byApp(201, "POST", mint, object{"repository_ids": []int64{w.repo.ID}, "permissions": object{"issues": "read"}})
	token := minted.at("token").(string)
	if !strings.HasPrefix(token, fmt.Sprintf("ghs_%d_", w.app.ID)) || strings.Count(token, ".") != 2 || len(token) < 200 {
		t.Errorf("the token is %s", token)
	}
	if at(minted.object(), "permissions.issues") != "read" || at(minted.object(), "permissions.contents") != nil {
		t.Errorf("minted %s", minted.text)
	}
	w.as(token, 200, "GET", "/repos/acme/shop/issues", nil)
	w.as(token, 403, "POST", "/repos/acme/shop/issues/1/comments", object{"body": "no"})
	w.as(token, 403, "GET", "/repos/acme/shop/contents/README.md", nil)
	w.as(token, 404, "GET", "/repos/acme/other", nil)
	w.do(200, "GET", "/repos/acme/other", nil)
	w.byApp(422, "POST", mint, object{"permissions": object{"secrets": "read"}})
	w.byApp(422, "POST", mint, object{"repository_ids": []int64{other.ID, 4}})
	narrow := w.app.Install(w.Org("acme-two"), w.Repo("acme-two/a", github.NewRepo{}))
	out := w.Repo("acme-two/b", github.NewRepo{})
	two := fmt.Sprintf("/app/installations/%d/access_tokens", narrow.ID)
	w.byApp(422, "POST", two, object{"repository_ids": []int64{out.ID}})
	w.byApp(422, "POST", two, object{"repositories": []string{"b"}})
	w.byApp(201, "POST", two, object{"repositories": []string{"a"}})
	w.Advance(time.Hour)
	w.as(token, 401, "GET", "/repos/acme/shop/issues", nil)

	get := func(jwt string, status int) {
		t.Helper()
		w.as(jwt, status, "GET", "/app", nil)
	}
	get(w.jwt(w.app, -time.Minute, 10*time.Minute), 200)
	get(w.jwt(w.app, -time.Minute, 11*time.Minute), 401)
	get(w.jwt(w.app, 0, 10*time.Minute+30*time.Second), 401)
	get(w.jwt(w.app, time.Minute, 5*time.Minute), 401)
	get(w.jwt(w.app, -9*time.Minute, -time.Second), 401)
	good := w.jwt(w.app, -time.Minute, 5*time.Minute)
	get(good[:len(good)-8]+"AAAAAAAA", 401)
	get("", 401)
	get(w.inst.Token(), 401)

	w.inst.Suspend(w.ann, true)
	w.byApp(403, "POST", mint, nil)
	w.do(403, "GET", "/repos/acme/shop", nil)
	w.inst.Suspend(w.ann, false)
	w.do(200, "GET", "/repos/acme/shop", nil)
	token = w.inst.Token()
	w.inst.Remove(w.ann)
	w.as(token, 401, "GET", "/repos/acme/shop", nil)
	w.byApp(404, "POST", mint, nil)
}
