package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/cli/exit"
)

const somePull = `{"id": "` + someID + `", "repo": "acme/web", "number": 3, "title": "Mend it", "state": "open", "head_ref": "svc/mend",
	"head_sha": "HEAD", "checks": "failed", "pending_action": {"state": "pending", "kind": "merge"}}`

// pr list lists pull requests, wherever one is, and --waiting what is asked.
func TestPRList(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/prs":       `{"data": [` + somePull + `]}`,
		"GET /v1/approvals": `{"data": [{"pr_id": "` + someID + `", "repo": "acme/web", "number": 3, "title": "Asked", "kind": "merge"}]}`,
	})
	p := f.person(t)
	p.holds("pr list", 0, "Mend it", "WAITS FOR", "your answer")
	p.holds("pr list --state merged", 0)
	if !f.was("GET /v1/prs?", "state%3Amerged") {
		t.Errorf("%q", f.calls)
	}
	p.holds("pr list --json title,head_ref", 0, "svc/mend")
	p.holds("pr list --waiting", 0, "Asked", "!svc/mend")
	p.holds("pr list --waiting --state open", exit.CodeMisused, "without --state")
	p.holds("pr list --state open --state merged", exit.CodeMisused, "given twice")
	p.holds("pr list --all -L 3", exit.CodeMisused, "not both")
}

// Outside a clone a number names a pull request if only one of the account has it.
func TestPRByNumberAnywhere(t *testing.T) {
	t.Parallel()
	other := strings.NewReplacer(someID, otherID, "acme/web", "acme/api", `"number": 3`, `"number": 4`).Replace(somePull)
	again := strings.Replace(other, `"number": 4`, `"number": 3`, 1)
	f := newFake(t, map[string]string{"GET /v1/prs": `{"data": [` + somePull + `, ` + other + `]}`, "GET /v1/prs/" + otherID: other})
	p := f.person(t)
	p.holds("pr view 4 --jq .repo", 0, "acme/api")
	p.holds("pr view 5", exit.CodeNotFound, "acme/proj#5")
	f.answers["GET /v1/prs"] = `{"data": [` + somePull + `, ` + again + `]}`
	p.holds("pr view 3", exit.CodeMisused, "say acme/web#3 or acme/api#3")
}

// Who approves a head that findings hold is told so, and how to go on.
func TestApprovedAndHeld(t *testing.T) {
	t.Parallel()
	held := func(n int) string {
		return strings.Replace(somePull, `"checks"`, fmt.Sprintf(`"review": {"state": "done", "verdict": "bad", "holding": %d}, "checks"`, n), 1)
	}
	at := "GET /v1/prs/" + someID
	f := newFake(t, map[string]string{at: held(1), at + "/diff": `{"files": []}`,
		"POST /v1/prs/" + someID + "/approve-pending": `{}`, "POST /v1/prs/" + someID + "/merge": `{}`})
	p := f.person(t)
	p.holds("pr approve "+someID, 0, "Approved: acme/web#3", "1 finding holds the merge: it waits",
		"yardmaster pr findings "+someID, "yardmaster finding dismiss", "!nothing else is in its way")
	p.holds("pr view "+someID, 0, "done; 1 finding holds the merge")
	f.answers[at] = held(2)
	p.holds("pr merge "+someID, 0, "2 findings hold the merge: it waits", "yardmaster finding dismiss")
	p.holds("pr view "+someID, 0, "done; 2 findings hold the merge")
	f.answers[at] = held(0)
	p.holds("pr approve "+someID, 0, "nothing else is in its way", "!finding")
}

// pr view says when a merge begins that waits so that it can be taken back, and how that is done.
func TestPRViewOfAMergeThatWaits(t *testing.T) {
	t.Parallel()
	at := "GET /v1/prs/" + someID
	waits := func(begins time.Time) string {
		return strings.Replace(somePull, `{"state": "pending", "kind": "merge"}`,
			`{"state": "approved", "kind": "merge", "begins_at": "`+begins.Format(time.RFC3339)+`"}`, 1)
	}
	f := newFake(t, map[string]string{at: waits(time.Now().Add(time.Hour)), at + "/diff": `{"files": []}`})
	p := f.person(t)
	p.holds("pr view "+someID, 0, "merge     begins ", "until then: yardmaster pr unapprove "+someID)
	f.answers[at] = waits(time.Now().Add(-time.Hour))
	p.holds("pr view "+someID, 0, "!pr unapprove")
}

// pr checks ends well only if the head has passed or has no checks: by what was seen last, where it is watched.
func TestPRChecks(t *testing.T) {
	t.Parallel()
	for state, of := range map[string]struct {
		code  int
		shows string
	}{"passed": {0, "head: passed."}, "none": {0, "no checks"}, "pending": {exit.CodeFailed, "not passed its checks yet"},
		"failed": {exit.CodeFailed, "check log ID"}, "lost_for_good": {exit.CodeFailed, "not passed"}} {
		f := newFake(t, map[string]string{"GET /v1/ci/runs": `{"data": []}`,
			"GET /v1/prs/" + someID: strings.Replace(somePull, `"checks": "failed"`, `"checks": "`+state+`"`, 1)})
		p := f.person(t)
		p.holds("pr checks "+someID, of.code, of.shows)
		if shown, code := p.terminal([]string{"pr", "checks", someID, "--watch"}, step{"head", "\x03"}); code != of.code {
			t.Errorf("%s, watched: exit code %d\n%s", state, code, shown)
		}
	}
}

// In a clone a pull request is fetched and checked out, and named by its number, or not at all:
// it is that of the branch.
func TestPRCheckout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(at string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = at
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	work, bare := filepath.Join(dir, "work"), filepath.Join(dir, "git", "acme", "web.git")
	git(dir, "init", "-q", "-b", "main", work)
	git(work, "commit", "-q", "--allow-empty", "-m", "one")
	git(work, "checkout", "-q", "-b", "svc/mend")
	git(work, "commit", "-q", "--allow-empty", "-m", "two")
	head := git(work, "rev-parse", "HEAD")
	git(work, "checkout", "-q", "main")
	git(dir, "clone", "-q", "--bare", work, bare)
	git(bare, "update-server-info")
	pull := strings.ReplaceAll(somePull, "HEAD", head)
	answers := map[string]string{
		"/v1/prs/" + someID: pull, "/v1/repos/acme/web/prs": `{"data": [` + pull + `]}`,
		"/v1/prs/" + someID + "/diff": `{"files": []}`,
		"/v1/ci/runs":                 `{"data": [{"id": "c1", "status": "failed", "command": "go test", "sha": "` + head + `"}]}`,
	}
	files := http.FileServer(http.Dir(dir))
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/git/") {
			files.ServeHTTP(w, r)
			return
		}
		if r.URL.Path == "/v1/repos/acme/web/prs" && strings.Contains(r.URL.RawQuery, "branch%3Amain") {
			w.Write([]byte(`{"data": []}`))
			return
		}
		w.Write([]byte(answers[r.URL.Path]))
	}))
	defer h.Close()
	p := newPerson(t, "YARDMASTER_URL="+h.URL, "YARDMASTER_TOKEN=t", "NO_COLOR=1")
	p.holds("pr checkout "+someID, exit.CodeMisused, "no clone", "git clone "+h.URL+"/git/acme/web.git")
	git(p.home, "clone", "-q", "--single-branch", "-b", "main", h.URL+"/git/acme/web.git", "clone")
	p.home = filepath.Join(p.home, "clone")
	p.holds("pr checkout 3", 0, "svc/mend is checked out, at "+head[:10], "Undo: git checkout main")
	if at := git(p.home, "rev-parse", "HEAD"); at != head {
		t.Errorf("it is at %s", at)
	}
	p.holds("pr checkout #3", 0, "svc/mend is checked out")
	p.holds("pr view --jq .number", 0, "3")
	p.holds("pr view 3 --jq .title", 0, "Mend it")
	p.holds("pr view 4", exit.CodeNotFound)
	p.holds("pr list --jq .[].title", 0, "Mend it")
	p.holds("pr checks", exit.CodeFailed, "go test", "The checks of its head: failed.")
	if _, err := os.Stat(filepath.Join(p.home, ".git", "refs", "remotes", "origin", "svc")); err != nil {
		t.Error(err)
	}
}
