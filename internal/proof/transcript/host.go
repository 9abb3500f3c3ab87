package transcript

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description"
)

// host is a GitHub where acme has installed the App of the server.
type host struct {
	gh             *github.Server
	app            *github.App
	shop, other    *github.Repo
	writes, reader string // tokens of people
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{gh: description.Serve(t, github.Options{Enterprise: "3.19.0"})}
	acme, ann, rob := h.gh.Org("acme"), h.gh.Person("ann"), h.gh.Person("rob")
	ann.Join(acme, "admin", false)
	files := map[string]string{"README.md": "# Shop\n"}
	shop := h.gh.Repo("acme/shop", github.NewRepo{Private: true, Files: files})
	other := h.gh.Repo("acme/other", github.NewRepo{Private: true, Files: files})
	shop.Allow(rob, "read")
	h.app = h.gh.NewApp(github.NewApp{
		Name: "Yard", HookURL: "http://127.0.0.1:1/", Secret: "hush",
		Permissions: map[string]string{
			"metadata": "read", "contents": "write", "pull_requests": "write", "issues": "write", "checks": "write", "statuses": "read",
			"actions": "write", "members": "read", "merge_queues": "write",
		},
	})
	h.app.Install(acme)
	h.shop, h.other = shop, other
	contents := map[string]string{"contents": "write"}
	h.writes = ann.PersonalToken(github.NewToken{Repos: []*github.Repo{shop}, Permissions: contents, Expires: 30 * 24 * time.Hour})
	h.reader = rob.PersonalToken(github.NewToken{Permissions: contents})
	return h
}

// flags connect a server to the host, whose installations belong to acme here.
func (h *host) flags(t *testing.T) []string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(key, []byte(h.app.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"--github-url", h.gh.Web, "--github-app-id", strconv.FormatInt(h.app.ID, 10), "--github-app-slug", h.app.Slug,
		"--github-app-key-file", key, "--github-app-webhook-secret", "hush", "--github-app-account", "acme",
		"--github-app-owners", "acme",
	}
}

// install makes the repositories those of acme here, as a delivery about the
// installation would: again, if the server, which asks the host for its installations,
// makes one of them known at the same time.
func (h *host) install(t *testing.T, y *yard) {
	t.Helper()
	at, err := url.Parse(h.gh.Web)
	if err != nil {
		t.Fatal(err)
	}
	in := y.Inside()
	take := func() error {
		return in.DB.Write(db.WithAccount(t.Context(), y.Account), func(tx *db.Tx) error {
			for name, r := range map[string]*github.Repo{"shop": h.shop, "other": h.other} {
				at := codehost.Repo{Host: "github:" + at.Host, ID: strconv.FormatInt(r.ID, 10), Owner: "acme", Name: name}
				if err := repo.Take(tx, codehost.RepoInfo{Repo: at, DefaultBranch: "main", Private: true}, "1"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = take()
	for tries := 0; db.IsUnique(err) && tries < 2; tries++ { // one for each repository
		err = take()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tell makes the tokens known to the transcript.
func (h *host) tell(known values) { known["token"], known["reader"] = h.writes, h.reader }
