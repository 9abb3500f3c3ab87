package github_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"yardmaster/internal/proof/github"
)

// TestEnterpriseServer holds the addresses and headers of a GitHub Enterprise Server,
// judged by its own description.
func TestEnterpriseServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{Enterprise: "3.19.0"})
	if w.API != w.Web+"/api/v3" || w.GraphQL != w.Web+"/api/graphql" {
		t.Errorf("the API is at %s and %s", w.API, w.GraphQL)
	}
	a := w.do(200, "GET", "/repos/acme/shop", nil)
	if a.header.Get("X-GitHub-Enterprise-Version") != "3.19.0" || a.header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("answered %v", a.header)
	}
	if version := w.as("", 200, "GET", "/meta", nil).at("installed_version"); version != "3.19.0" {
		t.Errorf("the version is %v", version)
	}
	p, path := w.opened()
	w.do(200, "POST", path+"/reviews", object{"event": "COMMENT", "body": "x"})
	w.do(201, "POST", "/repos/acme/shop/check-runs", object{"name": "x", "head_sha": p.Head()})
	w.do(200, "PUT", path+"/merge", object{"sha": p.Head()})
	if _, wrong := w.graph(w.inst.Token(), `query { viewer { login } }`, nil); wrong != "" {
		t.Error(wrong)
	}
	mustGit(t, t.TempDir(), "ls-remote", withToken(w.repo.CloneURL(), w.inst.Token()))
	if got := w.told(); !strings.Contains(got, "pull_request closed") {
		t.Errorf("told of %s", got)
	}
}

// TestManifest walks the way on which an App is registered by a form.
func TestManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	post := func(path, manifest string) *http.Response {
		t.Helper()
		r, err := plainClient.PostForm(w.Web+path, url.Values{"manifest": {manifest}, "confirmed": {"yes"}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const good = `{"name": "From a form", "url": "https://example.com", "redirect_url": "https://example.com/back", "public": false,
		"setup_url": "https://example.com/setup", "hook_attributes": {"url": "https://example.com/hook", "active": true},
		"default_permissions": {"contents": "write", "issues": "read"}, "default_events": ["push", "issues"]}`
	for name, bad := range map[string]string{
		"no JSON":                  `{`,
		"no url":                   `{"name": "x"}`,
		"events without a webhook": `{"name": "x", "url": "u", "default_events": ["push"], "default_permissions": {"contents": "read"}}`,
		"an event without its permission": `{"name": "x", "url": "u", "hook_attributes": {"url": "h"},
			"default_events": ["issues"], "default_permissions": {"contents": "read"}}`,
	} {
		r := post("/organizations/acme/settings/apps/new?state=s", bad)
		text, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, r.StatusCode, text)
		}
	}
	asked, err := plainClient.PostForm(w.Web+"/settings/apps/new", url.Values{"manifest": {good}})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(asked.Body)
	_ = asked.Body.Close()
	if asked.StatusCode != 200 || !strings.Contains(string(text), "Create GitHub App") {
		t.Errorf("before the person agrees: %d %s", asked.StatusCode, text)
	}
	r := post("/organizations/acme/settings/apps/new?state=s%26t", good)
	defer r.Body.Close()
	to, err := r.Location()
	if err != nil || to.Query().Get("state") != "s&t" || to.Host != "example.com" {
		t.Fatalf("sent to %v: %v", to, err)
	}
	made := w.as("", 201, "POST", "/app-manifests/"+to.Query().Get("code")+"/conversions", nil)
	if made.at("owner.login") != "acme" || made.at("slug") != "from-a-form" || made.at("webhook_secret") == nil {
		t.Errorf("made %s", made.text)
	}
	app := w.AppByID(made.id())
	w.as(w.jwt(app, 0, 60e9), 200, "GET", "/app", nil)
	page := w.Web + "/apps/from-a-form/installations/new?state=s"
	if a := w.ask("", "GET", page, nil); a.status != 200 || !strings.Contains(string(a.text), `value="acme"`) {
		t.Errorf("the page of the installation: %d %s", a.status, a.text)
	}
	installed, err := plainClient.PostForm(page, url.Values{"account": {"acme"}, "repository": {"acme/shop"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = installed.Body.Close()
	back, err := installed.Location()
	if err != nil || back.Path != "/setup" || back.Query().Get("state") != "s" || back.Query().Get("setup_action") != "install" {
		t.Errorf("sent to %v: %v", back, err)
	}
	w.as(w.jwt(app, 0, 60e9), 200, "GET", "/app/installations/"+back.Query().Get("installation_id"), nil)
	i := app.Install(w.org, w.repo)
	if got := app.Redirect(i, "install"); got != fmt.Sprintf("https://example.com/setup?installation_id=%d&setup_action=install", i.ID) {
		t.Errorf("after the installation the browser goes to %s", got)
	}
}
