package app

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

type shownCreation struct {
	Repo struct {
		ID, Host      string
		FullName      string `json:"full_name"`
		DefaultBranch string `json:"default_branch"`
		Enabled       bool
		PolicyValid   *bool `json:"policy_valid"`
	}
	Manifest struct {
		CommitSHA string `json:"commit_sha"`
		Artifacts []struct{ Path string }
	}
	TaskID *string `json:"scaffold_task_id"`
}

// named are the names of the repositories of acme.
func (f *atGitHub) named() (names []string) {
	f.t.Helper()
	var page struct {
		Data []struct {
			FullName string `json:"full_name"`
		}
	}
	decode(f.t, f.send("GET", "/v1/repos", f.owner, "").want(200), &page)
	for _, r := range page.Data {
		names = append(names, r.FullName)
	}
	slices.Sort(names)
	return names
}

// A repository is made in the organisation that has installed the App, though an answer
// of GitHub is lost; what GitHub delivers about it makes no second one.
func TestCreateAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := connect(t, e, "administration")
			f.gh.Break(github.Fault{Operation: "POST /orgs/{org}/repos", Effect: github.Lose, Times: 1})
			push := f.gh.Break(github.Fault{
				Operation: "git-receive-pack", Path: regexp.MustCompile(`/api\.git/`), Effect: github.Fail, Times: 1,
			})
			var out shownCreation
			decode(t, f.send("POST", "/v1/repos", f.owner, `{"name": "api", "description": "What customers call."}`,
				"Idempotency-Key", "one").want(201), &out)
			if f.gh.Seen(push) != 1 {
				t.Errorf("the push failed %d times", f.gh.Seen(push))
			}
			if out.Repo.FullName != "acme/api" || !strings.HasPrefix(out.Repo.Host, "github:") || !out.Repo.Enabled || out.TaskID == nil ||
				out.Repo.PolicyValid == nil || !*out.Repo.PolicyValid || len(out.Manifest.Artifacts) == 0 {
				t.Errorf("%+v", out)
			}
			there := f.gh.RepoByName("acme/api")
			if there == nil || there.Head("main") != out.Manifest.CommitSHA {
				t.Fatalf("at GitHub: %+v", there)
			}
			var again shownCreation
			decode(t, f.send("POST", "/v1/repos", f.owner, `{"name": "api", "description": "What customers call."}`,
				"Idempotency-Key", "one").want(201), &again)
			if again.Repo.ID != out.Repo.ID {
				t.Errorf("the retry made %s", again.Repo.ID)
			}
			f.send("POST", "/v1/repos", f.owner, `{"name": "api"}`).want(409)
			f.send("POST", "/v1/repos", f.owner, `{"name": "shop"}`).want(409)
			f.gh.Repo("acme/hidden", github.NewRepo{Private: true, Files: map[string]string{"a": "a"}})
			f.send("POST", "/v1/repos", f.owner, `{"name": "hidden"}`).want(409) // though the App does not see it
			if err := f.gh.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			patience.Until(f.t, "each is there once", func() bool { return slices.Equal(f.named(), []string{"acme/api", "acme/shop"}) })
			there.OpenIssue(f.ann, "It is slow", "Very.")
			patience.Until(f.t, "its issues are known", func() bool {
				return strings.Contains(string(f.send("GET", "/v1/repos/acme/api/issues", f.owner, "").want(200).body), "It is slow")
			})
		})
	}
}

// Without the permission nothing is asked of GitHub.
func TestCreateWithoutPermission(t *testing.T) {
	t.Parallel()
	f := connect(t, db.SQLite)
	a := f.send("POST", "/v1/repos", f.owner, `{"name": "api"}`).want(503)
	if !strings.Contains(string(a.body), "administration: write") || f.gh.Called("POST /orgs/{org}/repos") != 0 {
		t.Errorf("%s", a.body)
	}
	f.send("POST", "/v1/repos", f.owner, `{"name": "api", "host": "builtin"}`).want(201)
}
