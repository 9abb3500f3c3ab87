package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/mail"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description"
)

// shopPolicy has issues triaged, heads reviewed, and a person asked before a merge.
const shopPolicy = `version: 1
agent: {template: worker}
review: {mode: auto, template: reviewer}
issues: {triage: labelled, label: yardmaster}
pulls: {watch: labelled, label: yardmaster}
`

// worker writes a greeting with a slip, which it mends when it is told of it and the test
// lets it go on. It mends a broken build.
const worker = `
if grep -q 'says helo' "$YARDMASTER_PROMPT"; then while [ ! -e .git/go ]; do sleep 0.05; done; sed -i 's/helo/hello/' greet.sh
elif grep -q 'Repair' "$YARDMASTER_PROMPT"; then echo 'exit 0' >build.sh
else echo 'echo helo' >greet.sh; fi
git add -A && git commit -qm 'Greet people' && echo 'People are greeted.' >"$YARDMASTER_REPORT"`

// reviewer finds the slip, and confirms claims while it is there.
const reviewer = `
slip=$(grep -c helo greet.sh)
if grep -q 'Somebody claims' "$YARDMASTER_PROMPT"; then
  if [ "$slip" = 1 ]; then v=confirmed; else v=refuted; fi
  out='{"verdicts": [{"claim": 1, "verdict": "'$v'", "evidence": "sh greet.sh"}]}'
elif [ "$slip" = 1 ]; then
  out='{"findings": [{"file": "greet.sh", "line": 1, "severity": "high", "kind": "bug", "claim": "It says helo.", "why": "A letter is missing.", "how_to_see": "sh greet.sh"}]}'
else out='{"findings": []}'; fi
printf '` + "```json\\n%s\\n```" + `\n' "$out" >"$YARDMASTER_REPORT"`

// judge mints one task for each ask.
const judge = `scenarios:
  - name: greet
    without_tools: true
    match: Greet people
    steps:
      - text: '{"kind":"mint","reason":"It is plain.","tasks":[{"repo":"acme/shop","title":"Greet people","problem":"Nobody is greeted."}]}'
`

// flaking is the log of a test that comes and goes.
const flaking = "--- FAIL: TestLease (2.01s)\n    store_test.go:88: lease expired after 2.013s, want > 5s\nFAIL\nFAIL\texample.com/shop/store\t2.1s\n"

// atGitHub is a server that is connected to a GitHub, where acme has the repository shop.
type atGitHub struct {
	*stack
	gh       *github.Server
	ann, bob *github.Account
	shop     *github.Repo
	box      *machine
}

// newAtGitHub connects a server as a person does with a browser, and gives it a box.
func newAtGitHub(t *testing.T, e db.Engine) *atGitHub {
	script := filepath.Join(t.TempDir(), "judge.yml")
	if err := os.WriteFile(script, []byte(judge), 0o600); err != nil {
		t.Fatal(err)
	}
	st := newStack(t, "--scenario", script, "--database", dbtest.DSN(t, e))
	f := &atGitHub{stack: st, gh: description.Serve(t, github.Options{Enterprise: "3.19.0"})}
	f.ann, f.bob = f.gh.Person("ann"), f.gh.Person("bob")
	acme := f.gh.Org("acme")
	f.ann.Join(acme, "admin", false)
	f.shop = f.gh.Repo("acme/shop", github.NewRepo{Private: true, Files: map[string]string{
		"README.md": "# Shop\n", "build.sh": "exit 0\n", ".svc/policy.yml": shopPolicy,
	}})
	f.shop.Allow(f.bob, "write")
	f.shop.Protect("main", github.Protection{Checks: []github.Required{{Name: "build"}}})
	f.script("worker", worker)
	f.script("reviewer", reviewer)
	f.call(http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	f.connect().Install(acme, f.shop)
	f.until("the repository is enabled", func() bool {
		var r struct{ Enabled bool }
		return f.c.Call(f.ctx, http.MethodGet, "/v1/repos/acme/shop", nil, &r) == nil && r.Enabled
	})
	f.box = f.join("box")
	return f
}

// connect walks the set-up of the App.
func (f *atGitHub) connect() *github.App {
	f.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	base := "http://" + f.listen
	send := func(method, path, kind, body string) []byte {
		f.t.Helper()
		req, err := http.NewRequestWithContext(f.ctx, method, base+path, strings.NewReader(body))
		if err != nil {
			f.t.Fatal(err)
		}
		for k, v := range map[string]string{"Accept": "text/html", "Content-Type": kind, "Sec-Fetch-Site": "same-origin"} {
			req.Header.Set(k, v)
		}
		resp, err := browser.Do(req)
		if err != nil {
			f.t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			f.t.Fatalf("%s %s: %d %v %s", method, path, resp.StatusCode, err, text)
		}
		return text
	}
	const form = "application/x-www-form-urlencoded"
	send(http.MethodPost, "/auth/password", "application/json", fmt.Sprintf(`{"login": "ada", "password": %q}`, password))
	page := send(http.MethodPost, "/gh/setup", form, url.Values{"address": {f.gh.Web}, "organisation": {"acme"}}.Encode())
	action := regexp.MustCompile(`action="([^"]+)"`).FindSubmatch(page)
	manifest := regexp.MustCompile(`name="manifest" value="([^"]+)"`).FindSubmatch(page)
	if action == nil || manifest == nil {
		f.t.Fatalf("no form leads to GitHub: %s", page)
	}
	to, err := url.Parse(html.UnescapeString(string(action[1])))
	if err != nil {
		f.t.Fatal(err)
	}
	back, err := f.gh.Confirm(to.Path, to.Query().Get("state"), html.UnescapeString(string(manifest[1])))
	if err != nil {
		f.t.Fatal(err)
	}
	send(http.MethodGet, strings.TrimPrefix(back, base), "", "")
	var hosts struct {
		Data []struct {
			AppID string `json:"app_id"`
		}
	}
	if err := json.Unmarshal(send(http.MethodGet, "/v1/admin/code-hosts", "", ""), &hosts); err != nil {
		f.t.Fatal(err)
	}
	var appID int64
	if _, err := fmt.Sscan(hosts.Data[0].AppID, &appID); err != nil {
		f.t.Fatal(err)
	}
	return f.gh.AppByID(appID)
}

type shownPull struct {
	ID, Title, State, Checks string
	HeadSHA                  string `json:"head_sha"`
	Number                   int
	Pending                  *struct{ ID string } `json:"pending_action"`
	MergedBy                 *string              `json:"merged_by"`
	Babysit                  struct {
		State  string
		TaskID *string `json:"task_id"`
		CI     int     `json:"ci_rounds_used"`
		Review int     `json:"review_rounds_used"`
	}
}

// pull is the newest pull request of the repository; one without an id if there is none.
func (f *atGitHub) pull() shownPull {
	f.t.Helper()
	var page struct{ Data []shownPull }
	f.call(http.MethodGet, "/v1/repos/acme/shop/prs", nil, &page)
	if len(page.Data) == 0 {
		return shownPull{}
	}
	return page.Data[0]
}

// build runs the workflow of a head as GitHub's Actions do.
func (f *atGitHub) build(branch, sha string) *github.Run {
	return f.shop.Run(f.bob, github.NewRun{Event: "pull_request", SHA: sha, Branch: branch})
}

// mailed answers the link of a verb in the newest mail about a head.
func (f *atGitHub) mailed(words, head string) (link string) {
	f.t.Helper()
	f.until("a person is asked by mail", func() bool {
		all, err := mail.Folder{Dir: f.path("server/mail")}.List()
		if err != nil {
			f.t.Fatal(err)
		}
		for _, m := range slices.Backward(all) {
			if _, after, ok := strings.Cut(m.Text, words+":\n"); ok && strings.Contains(m.Text, head) {
				link, _, _ = strings.Cut(after, "\n")
				return true
			}
		}
		return false
	})
	return link
}

// press opens a link of a mail and presses the button of its page, without a session.
func (f *atGitHub) press(link string) {
	f.t.Helper()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := http.NewRequestWithContext(f.ctx, method, link, http.NoBody)
		if err != nil {
			f.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			f.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			f.t.Fatalf("%s: %d %v %s", method, resp.StatusCode, err, text)
		}
	}
}

// An issue becomes an ask, a task and a pull request. Its review finds a slip, which is
// mended; a test that comes and goes runs again without a round; a person approves from
// a mail; the merge closes the issue.
func TestIssueToMerge(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { newAtGitHub(t, e).issueToMerge(func() {}) })
	}
}

// So it does if the server is killed whenever something has just happened at GitHub, so
// that deliveries are lost, and intents begun and not recorded.
func TestIssueToMergeKilled(t *testing.T) {
	f := newAtGitHub(t, db.SQLite)
	f.issueToMerge(func() {
		f.server.kill()
		f.serve()
	})
}

// issueToMerge walks from an issue to its end. happened is called after each step at
// GitHub.
func (f *atGitHub) issueToMerge(happened func()) {
	t := f.t
	wish := f.shop.OpenIssue(f.bob, "Greet people", "Nobody is greeted.")
	wish.Label(f.ann, "yardmaster")
	happened()
	f.until("the pull request is opened", func() bool { p := f.pull(); return p.Number > 0 && p.State == "open" })
	p := f.pull()
	there := f.shop.Pull(p.Number)
	branch := f.branch(p.ID)
	f.build(branch, p.HeadSHA).Job("build").End("success", "")
	happened()
	f.until("the review says what it has found", func() bool { return len(there.Threads()) > 0 })
	if said := there.Threads()[0][0].Body; !strings.Contains(said, "It says helo.") {
		t.Errorf("the review says %s", said)
	}
	f.until("an agent is told of it, and goes on", func() bool {
		round := f.pull().Babysit.TaskID
		if round == nil {
			return false
		}
		tries := f.tries(*round)
		if len(tries) == 0 || tries[len(tries)-1].State != "live" {
			return false
		}
		f.box.release(tries[len(tries)-1])
		return true
	})
	first := p.HeadSHA
	f.until("the slip is mended", func() bool { p = f.pull(); return p.HeadSHA != first && there.Head() == p.HeadSHA })
	happened()
	run := f.build(branch, p.HeadSHA)
	run.Job("build").End("failure", flaking)
	f.until("the job runs again", func() bool { return run.Attempt() == 2 })
	run.Job("build").End("success", "")
	happened()
	f.press(f.mailed("Approve the merge", p.HeadSHA))
	happened()
	f.until("it is merged", func() bool { return f.pull().State == "merged" })
	p = f.pull()
	if there.Merged() == "" || p.MergedBy == nil || !strings.HasPrefix(*p.MergedBy, "user:") || p.Babysit.CI != 0 || p.Babysit.Review != 1 {
		t.Errorf("%+v, merged as %q", p, there.Merged())
	}
	happened()
	f.until("the issue is closed", func() bool { return wish.State().State == "closed" })
	if said := wish.Comments(); len(said) == 0 || len(there.Threads()) != 1 {
		t.Errorf("the issue says %+v, the reviews %+v", said, there.Threads())
	}
	f.server.stop()
}

// A person's pull request with the label is looked after: an agent mends its build and
// asks before it pushes to the person's branch; the person says yes from a mail, and from
// the next mail to the merge.
func TestWatchedToMerge(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			f := newAtGitHub(t, e)
			f.shop.Commit(f.bob, "mine", "Build it", map[string]string{"build.sh": "exit 1\n"})
			there := f.shop.OpenPull(f.bob, github.NewPull{Title: "Build it", Head: "mine", Base: "main"})
			f.shop.Issue(there.Number).Label(f.ann, "yardmaster")
			f.until("it is looked after", func() bool { return f.pull().Babysit.State == "watching" })
			first := there.Head()
			f.build("mine", first).Job("build").End("failure", "build.sh:1: error: the build is broken\n")
			f.press(f.mailed("Approve the push", first))
			f.until("the mended head is pushed", func() bool { return there.Head() != first && f.pull().HeadSHA == there.Head() })
			f.build("mine", there.Head()).Job("build").End("success", "")
			f.press(f.mailed("Approve the merge", there.Head()))
			f.until("it is merged", func() bool { return f.pull().State == "merged" })
			if p := f.pull(); there.Merged() == "" || p.Babysit.CI != 1 {
				t.Errorf("%+v, merged as %q", p, there.Merged())
			}
			f.server.stop()
		})
	}
}

// branch is the head branch of a pull request.
func (f *atGitHub) branch(prID string) string {
	f.t.Helper()
	var p struct {
		HeadRef string `json:"head_ref"`
	}
	f.call(http.MethodGet, "/v1/prs/"+prID, nil, &p)
	return p.HeadRef
}
