package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/proof/patience"
)

// begins has an agent run a script on a task of a repository, on a box of this machine.
func (y *yard) begins(repo, script string) (taskID string) {
	y.t.Helper()
	body, err := json.Marshal(map[string]any{"agent": "command", "isolation": "none", "command": []string{"sh", "-c", script}})
	if err != nil {
		y.t.Fatal(err)
	}
	y.send("PUT", "/v1/templates/script", y.owner, string(body)).want(200)
	var enrolled struct{ Token string }
	decode(y.t, y.send("POST", "/v1/runners/enrollments", y.owner, `{}`).want(201), &enrolled)
	y.box(enrolled.Token)
	var made struct {
		ID string `json:"task_id"`
	}
	decode(y.t, y.send("POST", "/v1/tasks", y.owner,
		fmt.Sprintf(`{"repo": %q, "title": "Work", "problem": "Do it.", "template": "script"}`, repo)).want(202), &made)
	return made.ID
}

// failure is why the last try of a task has failed; "" if none has.
func (y *yard) failure(taskID string) string {
	y.t.Helper()
	var seen struct{ Failure *string }
	decode(y.t, y.send("GET", "/v1/tasks/"+taskID, y.owner, "").want(200), &seen)
	if seen.Failure == nil {
		return ""
	}
	return *seen.Failure
}

// works is begins, and answers the pull request once its check has ended.
func (y *yard) works(repo, script string) (p shownPull) {
	y.t.Helper()
	taskID := y.begins(repo, script)
	patience.Until(y.t, "the check of the pull request has ended", func() bool {
		var page struct{ Data []shownPull }
		decode(y.t, y.send("GET", "/v1/repos/"+repo+"/prs", y.owner, "").want(200), &page)
		if len(page.Data) > 0 {
			p = page.Data[0]
		}
		if page.Data == nil || p.Checks != "passed" && p.Checks != "failed" {
			if why := y.failure(taskID); why != "" {
				y.t.Fatalf("a try has failed: %s\n%s", why, y.send("GET", "/v1/tasks/"+taskID+"/events?per_page=100", y.owner, "").body)
			}
			return false
		}
		return true
	})
	return p
}

// Agents and checks have the contents of files of Git LFS. What an agent writes over one,
// however it commits that, is handed in as a pointer whose object is there: the real client
// clones it.
func TestLFSForAgentsAndChecks(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			l := start(t, e).lab()
			dir := l.work("acme/art", map[string][]byte{"data.bin": random(9, 70_000), "other.bin": random(10, 2000)})
			l.write(dir, "policy", nil)
			if err := os.Mkdir(filepath.Join(dir, ".svc"), 0o755); err != nil {
				t.Fatal(err)
			}
			l.write(dir, ".svc/policy.yml", []byte("version: 1\nreview: {mode: off}\nchecks: {command: 'test $(wc -c <data.bin) = 1048576 && "+
				"test $(wc -c <other.bin) = 2000', timeout: 5m}\n"))
			l.git(dir, "", "add", "-A")
			l.git(dir, "", "commit", "-qm", "Policy")
			l.git(dir, l.owner, "push", "-q", "origin", "main")
			p := l.works("acme/art", "export GIT_CONFIG_NOSYSTEM=1; test $(wc -c <data.bin) = 70000 && head -c 1048576 /dev/zero >data.bin && git commit -qam data && echo more >>policy")
			if p.Checks != "passed" {
				t.Errorf("the check has %s", p.Checks)
			}
			var diff struct {
				Files []struct {
					Path           string
					Binary         bool
					Added, Deleted int
				}
			}
			decode(t, l.send("GET", "/v1/prs/"+p.ID+"/diff", l.owner, "").want(200), &diff)
			if len(diff.Files) != 2 || diff.Files[0].Path != "data.bin" || diff.Files[0].Binary {
				t.Errorf("the pull request changes %+v", diff.Files)
			}
			there := filepath.Join(t.TempDir(), "clone")
			l.git(dir, l.owner, "clone", "-q", l.URL()+"/git/acme/art.git", there)
			l.git(there, l.owner, "-c", "advice.detachedHead=false", "checkout", "-q", p.HeadSHA)
			if st, err := os.Stat(filepath.Join(there, "data.bin")); err != nil || st.Size() != 1<<20 {
				t.Errorf("%v %v", st, err)
			}
			if out := l.git(there, "", "lfs", "fsck"); !strings.Contains(out, "OK") {
				t.Error(out)
			}
		})
	}
}

// A policy may leave the contents away; what is not there is told to the agent once, by name.
func TestLFSThatIsNotThere(t *testing.T) {
	t.Parallel()
	l := start(t, db.SQLite).lab()
	lost := gitlfs.Pointer{OID: strings.Repeat("0", 64), Size: 1 << 20}
	dir := l.work("acme/art", map[string][]byte{"lost.bin": []byte(lost.String())})
	if err := os.Mkdir(filepath.Join(dir, ".svc"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.write(dir, ".svc/policy.yml", []byte("version: 1\nreview: {mode: off}\nchecks: {command: 'true'}\n"))
	l.git(dir, "", "add", "-A")
	l.git(dir, "", "commit", "-qm", "Policy")
	l.git(dir, l.owner, "-c", "lfs.allowincompletepush=true", "push", "-q", "origin", "main")
	p := l.works("acme/art", `cp "$YARDMASTER_PROMPT" prompt && git add prompt && git commit -qm prompt`)
	there := filepath.Join(t.TempDir(), "clone")
	l.git("/", l.owner, "clone", "-q", "--no-checkout", l.URL()+"/git/acme/art.git", there)
	want := "* `lost.bin`: a pointer of Git LFS: The repository has no object of this name."
	if text := l.git(there, "", "show", p.HeadSHA+":prompt"); strings.Count(text, want) != 1 {
		t.Errorf("the agent was told:\n%s", text)
	}
}

// Work whose objects the account has no room for is not handed in by half: its branch stays
// away, and the run says why.
func TestLFSWithoutRoomForTheWork(t *testing.T) {
	t.Parallel()
	l := start(t, db.SQLite).lab()
	dir := l.work("acme/art", map[string][]byte{"data.bin": random(12, 1000)})
	l.git(dir, l.owner, "push", "-q", "origin", "main")
	l.send("PUT", "/v1/admin/accounts/"+l.acct+"/quota", l.operator(), `{"confirm": true, "object_bytes": 5000}`).want(200)
	taskID := l.begins("acme/art", "head -c 9000 /dev/zero >data.bin && git commit -qam data")
	why := ""
	patience.Until(t, "the run has failed", func() bool { why = l.failure(taskID); return why != "" })
	if !strings.Contains(why, "Git LFS: The account has 1000 of the 5000 bytes in objects that it may have") {
		t.Errorf("the run says %s", why)
	}
	if refs := l.git(dir, l.owner, "ls-remote", "origin", "refs/heads/svc/*"); refs != "" {
		t.Errorf("a branch is there: %s", refs)
	}
}
