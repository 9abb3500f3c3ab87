package transcript

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/rig"
)

// startAtGitHub is start, beside a GitHub at which northwind has installed the App of
// the control plane. The milestones of northwind/roadmap are the goals of the platform.
func startAtGitHub(t *testing.T, e db.Engine) *yard {
	t.Helper()
	gh, err := github.Start(github.Options{Enterprise: "3.19.0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gh.Close(); err != nil {
			t.Error(err)
		}
	})
	org, ann := gh.Org("northwind"), gh.Person("ann")
	ann.Join(org, "admin", false)
	roadmap := gh.Repo("northwind/roadmap", github.NewRepo{Private: true, Files: map[string]string{"README.md": "# Roadmap\n"}})
	m := roadmap.NewMilestone(ann, "Boxes")
	m.Add(ann, roadmap.OpenIssue(ann, "Update", "By themselves."))

	// The App is registered before the server has an address.
	var server atomic.Pointer[string]
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		on, err := http.NewRequestWithContext(r.Context(), r.Method, *server.Load()+"/v1/inbound/github", r.Body)
		if err == nil {
			on.Header, on.ContentLength = r.Header, r.ContentLength
			var answer *http.Response
			if answer, err = rig.Plain.Do(on); err == nil {
				answer.Body.Close()
				w.WriteHeader(answer.StatusCode)
				return
			}
		}
		http.Error(w, err.Error(), http.StatusBadGateway)
	}))
	t.Cleanup(hook.Close)
	app := gh.NewApp(github.NewApp{
		Name: "Yardmaster", HookURL: hook.URL, Secret: "hush",
		Permissions: map[string]string{"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write"},
	})
	key := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(key, []byte(app.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	host := "github:" + strings.TrimPrefix(gh.Web, "http://")
	y := start(t, e, "--github-url", gh.Web, "--github-app-id", strconv.FormatInt(app.ID, 10), "--github-app-slug", app.Slug,
		"--github-app-key-file", key, "--github-app-webhook-secret", "hush", "--github-app-account", "acme",
		"--github-app-owners", "northwind",
		"--goals-repo", host+"/northwind/roadmap")
	base := y.URL()
	server.Store(&base)
	app.Install(org, roadmap)
	y.Eventually("the installation is known", func() bool {
		known := false
		y.Write(y.Account, func(tx *db.Tx) (err error) {
			there := codehost.Repo{Host: host, ID: strconv.FormatInt(roadmap.ID, 10), Owner: "northwind", Name: "roadmap"}
			_, known, err = repo.At(tx, there)
			return err
		})
		return known
	})
	return y
}
