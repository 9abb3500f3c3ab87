package pull

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/proof/seed"
)

func (y *yard) ctx() context.Context { return db.WithAccount(context.Background(), "acme") }

// ordered is the order to merge a pull request.
func (y *yard) ordered(prID string) (d record.DueRow) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		a, err := record.OpenAction.One(tx, prID)
		if err == nil {
			d, err = record.OrderByID.One(tx, a.ID)
		}
		return err
	})
	return d
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(y.ctx(), fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) pass(d time.Duration) {
	y.clock.Add(d.Microseconds())
	y.ci.Pass(y.ctx())
	y.Service.Pass(y.ctx())
	duetest.Pass(y.ctx(), y.t, y.Due)
	y.read()
	y.asTable()
}

func (y *yard) git(args ...string) string {
	y.t.Helper()
	c := exec.Command("git", args...)
	c.Dir = y.work
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com"}
	out, err := c.CombinedOutput()
	if err != nil {
		y.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit puts a file on a branch, which begins at main, and pushes it.
func (y *yard) commit(branch, path, text string) (sha string) {
	y.t.Helper()
	if branch != "main" {
		if y.git("branch", "--list", branch) == "" {
			y.git("branch", branch, "main")
		}
		y.git("checkout", "--quiet", branch)
		defer y.git("checkout", "--quiet", "main")
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(y.work, path)), 0o755); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(y.work, path), []byte(text), 0o644); err != nil {
		y.t.Fatal(err)
	}
	y.git("add", "--all")
	y.git("commit", "--quiet", "--message", "Write "+path)
	y.push(branch)
	return y.git("rev-parse", "HEAD")
}

func (y *yard) push(refspec string) {
	y.t.Helper()
	y.git("push", "--quiet", "--force", filepath.Join(y.root, "acme", "web.git"), refspec)
}

// policy puts a policy file in force.
func (y *yard) policy(yml string) {
	y.t.Helper()
	if !strings.Contains(yml, "review:") { // nobody reviews in the tests of this package
		yml += "review: {mode: 'off'}\n"
	}
	if _, msgs := repo.ParsePolicy([]byte(yml)); msgs != nil {
		y.t.Fatal(msgs)
	}
	y.write(func(tx *db.Tx) error {
		_, err := seed.SetPolicy.Exec(tx, y.repo, yml)
		return err
	})
}

// propose opens a pull request of a branch, for the task named after the branch.
func (y *yard) propose(branch, sha string) (prID string) {
	y.t.Helper()
	defer y.read()
	return y.proposed(branch, sha)
}

// proposed is propose, before git was asked.
func (y *yard) proposed(branch, sha string) (prID string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		r, _, err := repo.ByID(tx, y.repo)
		if err != nil {
			return err
		}
		prID, err = y.Propose(tx, r, Proposal{TaskID: "task-" + branch, Title: "Do " + branch, Branch: branch, HeadSHA: sha,
			BaseSHA: strings.Repeat("b", 40)})
		return err
	})
	return prID
}

// read has git asked about what may have moved, as the pass after a push does.
func (y *yard) read() {
	for range 3 { // a head that has moved is read again
		each(y.ctx(), y.Service, "read the facts", all(record.FactsDue), y.readFacts)
	}
}

// moved reports a push.
func (y *yard) moved(branch, sha string) {
	y.t.Helper()
	y.reported(branch, sha)
	y.read()
}

// reported is moved, before git was asked.
func (y *yard) reported(branch, sha string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		r, _, err := repo.ByID(tx, y.repo)
		if err != nil {
			return err
		}
		return y.OnPush(tx, r, branch, sha, "user:ann")
	})
}

// checked ends the check that a task carried out.
func (y *yard) checked(task string, exit *int) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		return y.ci.Finish(tx, ci.Outcome{TaskID: task, RunID: "r", BoxID: "b", ExitCode: exit, Output: "ok"})
	})
}

// call sends a request of a user with every scope of the package.
func (y *yard) call(status int, method, path, body string, into any) {
	y.t.Helper()
	y.callAs("acme", status, method, path, body, into)
}

func (y *yard) callAs(account string, status int, method, path, body string, into any) {
	y.t.Helper()
	got, text := y.answer(account, method, path, body)
	if got != status {
		y.t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, got, status, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			y.t.Fatalf("%v: %s", err, text)
		}
	}
}

func (y *yard) answer(account, method, path, body string) (int, []byte) {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Caller", account)
	req.Header.Set("Authorization", "Bearer "+"read:prs write:prs")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	y.http.ServeHTTP(rec, req)
	return rec.Code, rec.Body.Bytes()
}

func (y *yard) pr(prID string) (pr Request) {
	y.t.Helper()
	y.call(200, "GET", "/v1/prs/"+prID, "", &pr)
	return pr
}

// refused sends a decision that must fail with a conflict, and answers the
// problem.
func (y *yard) refused(reason, prID, verb, sha string) (problem map[string]any) {
	y.t.Helper()
	y.call(409, "POST", "/v1/prs/"+prID+"/"+verb+"-pending", `{"head_sha": "`+sha+`"}`, &problem)
	if problem["reason"] != reason {
		y.t.Errorf("%s is refused with %v, want %s", verb, problem["reason"], reason)
	}
	return problem
}

func (y *yard) approve(prID, sha string) {
	y.t.Helper()
	body := `{"head_sha": "` + sha + `"}`
	if a := y.pr(prID).PendingAction; a != nil {
		body = `{"head_sha": "` + sha + `", "action_id": "` + a.ID + `"}`
	}
	y.call(200, "POST", "/v1/prs/"+prID+"/approve-pending", body, nil)
}
