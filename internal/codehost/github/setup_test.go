package github

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

// TestManifest holds that GitHub takes the manifest, that the code is good once, and that
// the App that comes of it works.
func TestManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	at := Addresses{Web: w.peer.Web, API: w.peer.API, GraphQL: w.peer.GraphQL}
	for name, on := range map[string]bool{"with both switches": true, "without": false} {
		o := AppOptions{
			Name: "Yard " + name[:7], URL: "https://y.example", HookURL: "https://y.example/v1/inbound/github",
			RedirectURL: "https://y.example/setup/done", CallbackURL: "https://y.example/auth/github/callback",
			SetupURL: "https://y.example/setup/installed", Public: true, Workflows: on, Administration: on,
		}
		text, err := Manifest(o)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Permissions map[string]string `json:"default_permissions"`
			Events      []string          `json:"default_events"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		if (m.Permissions["workflows"] == "write") != on || (m.Permissions["administration"] == "write") != on ||
			slices.Contains(m.Events, "repository_ruleset") != on {
			t.Errorf("%s: %s", name, text)
		}
		form, err := url.Parse(AppAddress(at, "acme", "s t"))
		if err != nil || form.Path != "/organizations/acme/settings/apps/new" || form.Query().Get("state") != "s t" {
			t.Fatalf("the form is posted to %s, %v", form, err)
		}
		back, err := w.peer.Confirm(form.Path, "s t", string(text))
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(back)
		if err != nil || !strings.HasPrefix(back, o.RedirectURL) || to.Query().Get("state") != "s t" {
			t.Fatalf("back to %s, %v", back, err)
		}
		c, err := Convert(t.Context(), at, nil, to.Query().Get("code"))
		if err != nil || c.AppID == 0 || c.Slug == "" || c.WebhookSecret == "" || c.ClientSecret == "" || c.Owner.Login != "acme" {
			t.Fatalf("%s, %v", c, err)
		}
		if text := c.String(); strings.Contains(text, c.WebhookSecret) || strings.Contains(text, "PRIVATE") {
			t.Errorf("it prints its secrets: %s", text)
		}
		_, err = Convert(t.Context(), at, nil, to.Query().Get("code"))
		wants(t, "the code again", err, codehost.ErrNotFound)
		w.peer.AppByID(c.AppID).Install(w.org)
		h := w.connect(func(cfg *Config) {
			cfg.AppID, cfg.Slug, cfg.Key, cfg.Secrets = c.AppID, c.Slug, []byte(c.Key), []string{c.WebhookSecret}
		})
		if _, err := h.Info(t.Context(), w.shop); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Convert(t.Context(), at, nil, "../../user")
	wants(t, "a code that is none", err, codehost.ErrNotFound)
	if got := AppAddress(at, "", "x"); got != w.peer.Web+"/settings/apps/new?state=x" {
		t.Errorf("a person's form is posted to %s", got)
	}
	quiet, err := Manifest(AppOptions{Name: "Quiet", URL: "https://y.example", RedirectURL: "https://y.example/done"})
	if err != nil || strings.Contains(string(quiet), "hook_attributes") || strings.Contains(string(quiet), "issues\"]") {
		t.Errorf("without deliveries: %s, %v", quiet, err)
	}
	if _, err := w.peer.Confirm("/settings/apps/new", "x", string(quiet)); err != nil {
		t.Error(err)
	}
}

func TestCheckToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	other := w.peer.Repo("acme/other", peer.NewRepo{Private: true})
	for name, c := range map[string]struct {
		token      string
		read, push bool
		ends       bool
	}{
		"writes": {w.bob.PersonalToken(peer.NewToken{
			Repos: []*peer.Repo{w.repo}, Permissions: map[string]string{"contents": "write"}, Expires: 30 * 24 * time.Hour,
		}), true, true, true},
		"elsewhere": {w.bob.PersonalToken(peer.NewToken{Repos: []*peer.Repo{other}}), false, false, false},
		"a reader": {func() string {
			w.repo.Allow(w.peer.Person("rob"), "read")
			return w.peer.Person("rob").PersonalToken(peer.NewToken{Permissions: map[string]string{"contents": "write"}})
		}(), true, false, false},
	} {
		got, err := w.host.CheckToken(ctx, c.token, w.shop)
		if err != nil || got.Read != c.read || got.Push != c.push || (got.ExpiresAt != nil) != c.ends || got.User.Login == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if c.ends && got.ExpiresAt.Sub(w.peer.Now()).Round(time.Hour) != 30*24*time.Hour {
			t.Errorf("it ends at %s", got.ExpiresAt)
		}
	}
	for _, token := range []string{"", "github_pat_wrong0000000", "github_pat_\r\nX-Evil: 1", "ghp_" + strings.Repeat("a", 2000)} {
		_, err := w.host.CheckToken(ctx, token, w.shop)
		wants(t, "the token "+token[:min(20, len(token))], err, codehost.ErrTokenRefused)
	}
}

// TestEnterpriseServer holds that an Enterprise Server works by its address alone.
func TestEnterpriseServer(t *testing.T) {
	t.Parallel()
	var in mail
	w := newWorld(t, peer.Options{Enterprise: "3.19.0", WatchDelivery: in.add}, func(c *Config) {
		c.Addresses = AtServer(c.Addresses.Web + "/")
	})
	ctx := t.Context()
	content, _, err := w.host.ReadFile(ctx, w.shop, "main", "README.md")
	if err != nil || string(content) != "# Shop\n" {
		t.Errorf("a file: %q, %v", content, err)
	}
	pull := w.pull("svc/a", map[string]string{"cart.go": numbered(30, 5)})
	if _, err := w.host.Threads(ctx, w.shop, int64(pull.Number)); err != nil {
		t.Error(err)
	}
	if _, _, err := w.host.ChecksOf(ctx, w.shop, pull.Head(), ""); err != nil {
		t.Error(err)
	}
	if _, err := w.host.MergePull(ctx, w.shop, once1, int64(pull.Number), codehost.PullMerge{
		HeadSHA: pull.Head(), Method: codehost.MethodSquash, Title: "x",
	}); err != nil {
		t.Error(err)
	}
	for _, l := range in.take() {
		if _, err := w.host.Accept(l.header.Get, l.body); err != nil {
			t.Errorf("a delivery: %v", err)
		}
		l.header.Del("X-GitHub-Enterprise-Host")
		_, err := w.host.Accept(l.header.Get, l.body)
		wants(t, "a delivery of github.com", err, codehost.ErrForeign)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]Addresses{
		"github.com":   {"https://github.com", "https://api.github.com", "https://api.github.com/graphql"},
		"acme.ghe.com": {"https://acme.ghe.com", "https://api.acme.ghe.com", "https://api.acme.ghe.com/graphql"},
		"ghe.corp":     {"https://ghe.corp", "https://ghe.corp/api/v3", "https://ghe.corp/api/graphql"},
	} {
		if got := At(host); got != want {
			t.Errorf("%s is at %+v", host, got)
		}
	}
}
