package review

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

var (
	said    = db.Q[string](`SELECT kind FROM audit WHERE account_id = 'acme' AND kind LIKE 'review.%' ORDER BY seq`)
	allRuns = db.Q[Run](`SELECT ` + runColumns + ` WHERE account_id = $1 AND pr_id = $2 ORDER BY created_at, id`)
	every   = db.Q[Finding](`SELECT ` + findingColumns + ` WHERE account_id = $1 AND pr_id = $2 ORDER BY created_at, id`)
)

// yard reviews the pull request pr of acme/web, at a real code host. Its pull requests,
// tasks, models and posts are its own.
type yard struct {
	*Service
	t       testing.TB
	hub     *event.Hub
	clock   *atomic.Int64
	root    string
	work    string // a clone
	repo    string
	policy  string
	pr      Pull
	told    Result            // what the pull request was told last
	tasks   []Pass            // the passes queued, the nth is task-n
	stopped []string          // tasks
	held    map[string]bool   // tasks that are
	full    bool              // the queue takes no pass
	gap     string            // there is no model
	brains  map[string]Seen   // by task
	posted  []Posting         // reviews
	answers map[string]string // texts, by claim
	said    int               // texts in threads
	checks  []string          // states of the check
	titles  []string          // of the check
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { fn(t, open(t, e)) })
	}
}

func open(t testing.TB, e db.Engine) *yard {
	y := &yard{t: t, hub: event.NewHub(), clock: new(atomic.Int64), root: t.TempDir(), work: t.TempDir(), answers: map[string]string{}}
	y.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
	d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return time.UnixMicro(y.clock.Add(1)) }})
	host, err := builtin.New(builtin.Config{Root: y.root, BaseURL: "http://host"})
	if err != nil {
		t.Fatal(err)
	}
	web := codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}
	y.Service = New(Needs{DB: d, Due: duetest.New(d, y.hub), Logger: slog.New(slog.DiscardHandler),
		Pulls: y, Tasks: y, Models: y, Poster: y,
		Hosts: codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: host, Forge: builtin.Forge{}}})})
	if err := host.Create(context.Background(), web, codehost.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	y.write(func(tx *db.Tx) error {
		for _, account := range []string{"acme", "rival"} {
			if err := seed.Add(tx, seed.Account{ID: account}); err != nil {
				return err
			}
		}
		y.repo, err = repo.Install(tx, web, "main", true)
		return err
	})
	y.git("init", "--quiet", "--initial-branch=main")
	y.commit("README", "hello\n")
	y.push("main")
	y.git("checkout", "--quiet", "-b", "topic")
	y.pr = Pull{ID: "0199d3a4-5b6c-7d8e-9f01-23456789abcd", RepoID: y.repo, Number: 7, Title: "Do it", HeadRef: "topic", BaseRef: "main",
		Open: true, Watched: true}
	return y
}

func (y *yard) ctx() context.Context { return db.WithAccount(context.Background(), "acme") }

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(y.ctx(), fn); err != nil {
		y.t.Fatal(err)
	}
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

func (y *yard) push(branch string) {
	y.git("push", "--quiet", "--force", filepath.Join(y.root, "acme", "web.git"), "HEAD:"+branch)
}

func (y *yard) commit(path, text string) {
	y.t.Helper()
	if err := os.WriteFile(filepath.Join(y.work, path), []byte(text), 0o644); err != nil {
		y.t.Fatal(err)
	}
	y.git("add", "--all")
	y.git("commit", "--quiet", "--allow-empty", "--message", "Write "+path)
}

// head makes the commit of the clone the head of the pull request, and has its review
// begin.
func (y *yard) head() {
	y.t.Helper()
	y.push("topic")
	r := y.ref()
	host, err := y.Hosts.Of(r.HostRepo())
	if err != nil {
		y.t.Fatal(err)
	}
	c, err := host.Compare(y.ctx(), r.HostRepo(), "main", "topic")
	if err != nil {
		y.t.Fatal(err)
	}
	y.pr.HeadSHA, y.pr.MergeBase, y.pr.Change = c.HeadSHA, c.MergeBase, c.Change
	r = y.ref()
	y.write(func(tx *db.Tx) error { return y.HeadKnown(tx, r, y.pr) })
}

func (y *yard) ref() (r repo.Ref) {
	y.write(func(tx *db.Tx) (err error) {
		if _, err := seed.SetPolicy.Exec(tx, y.repo, y.policy); err != nil {
			return err
		}
		r, _, err = repo.ByID(tx, y.repo)
		return err
	})
	return r
}

// pass lets the loop run once, after a time.
func (y *yard) pass(d time.Duration) {
	y.clock.Add(d.Microseconds())
	duetest.Pass(y.t.Context(), y.t, y.Due)
}

// found answers the newest pass, which must be a finder's.
func (y *yard) found(all ...named) {
	y.t.Helper()
	if all == nil {
		all = []named{}
	}
	y.answer(map[string]any{"findings": all})
}

// verified answers the newest pass, which must be a verifier's: the claims that are
// confirmed, by number.
func (y *yard) verified(n int, confirmed ...int) {
	y.t.Helper()
	var all []map[string]any
	for i := range n {
		v := "refuted"
		if slices.Contains(confirmed, i+1) {
			v = "confirmed"
		}
		all = append(all, map[string]any{"claim": i + 1, "verdict": v, "evidence": "Seen."})
	}
	y.answer(map[string]any{"verdicts": all})
}

func (y *yard) answer(v any) {
	y.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		y.t.Fatal(err)
	}
	y.write(func(tx *db.Tx) error { return y.Reported(tx, fmt.Sprint("task-", len(y.tasks)), string(text)) })
}

func (y *yard) runs() (all []Run) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) {
		all, err = allRuns.All(tx, "acme", y.pr.ID)
		return err
	})
	return all
}

func (y *yard) last() Run {
	y.t.Helper()
	all := y.runs()
	if len(all) == 0 {
		y.t.Fatal("there is no run")
	}
	return all[len(all)-1]
}

// states are the states of all findings, by claim.
func (y *yard) states() map[string]string {
	y.t.Helper()
	out := map[string]string{}
	y.write(func(tx *db.Tx) error {
		all, err := every.All(tx, "acme", y.pr.ID)
		for _, f := range all {
			out[f.Claim] = strings.TrimSpace(out[f.Claim] + " " + f.State)
		}
		return err
	})
	return out
}

// wantRun compares the newest run: state, verdict and findings kept, -1 for none.
func (y *yard) wantRun(state, verdict string, kept int64) {
	y.t.Helper()
	r := y.last()
	v, k := "", int64(-1)
	if r.Verdict != nil {
		v = *r.Verdict
	}
	if r.Kept != nil {
		k = *r.Kept
	}
	if r.State != state || v != verdict || k != kept {
		y.t.Errorf("the run is %s, %q with %d (%s), want %s, %q with %d", r.State, v, k, r.Note, state, verdict, kept)
	}
}

// What follows implements the needs of the Service.

func (y *yard) Get(_ *db.Tx, prID string) (Pull, bool, error)  { return y.pr, prID == y.pr.ID, nil }
func (y *yard) Lock(_ *db.Tx, prID string) (Pull, bool, error) { return y.pr, prID == y.pr.ID, nil }

func (y *yard) Titles(*db.Tx, []string) (map[string]Title, error) { return map[string]Title{}, nil }

func (y *yard) Reviewed(_ *db.Tx, _, _ string, r Result) error {
	y.told = r
	return nil
}

func (y *yard) Queue(_ *db.Tx, _ repo.Ref, p Pass) (string, error) {
	if y.full {
		return "", fault.New(fault.RateLimited, "queue-full", "Full.")
	}
	y.tasks = append(y.tasks, p)
	return fmt.Sprint("task-", len(y.tasks)), nil
}

func (y *yard) Stop(_ *db.Tx, taskID string) error {
	y.stopped = append(y.stopped, taskID)
	return nil
}

// Held tells that the tasks in y.held are.
func (y *yard) Held(_ *db.Tx, taskID string) (bool, error) { return y.held[taskID], nil }

func (y *yard) Resolve(*db.Tx, string, string, string) (string, string, error) {
	return "t", y.gap, nil
}
func (y *yard) Other(*db.Tx, string) (string, error) { return "other", nil }

func (y *yard) Brains(*db.Tx, []string) (map[string]Seen, error) { return y.brains, nil }

func (y *yard) PostReview(_ *db.Tx, _ repo.Ref, _ Pull, p Posting) error {
	y.posted = append(y.posted, p)
	return nil
}

func (y *yard) SetCheck(_ *db.Tx, _ repo.Ref, _ Pull, c Check) error {
	y.checks, y.titles = append(y.checks, c.State), append(y.titles, c.Title)
	return nil
}

func (y *yard) Answer(_ *db.Tx, _ repo.Ref, _ Pull, f Finding, text string, _ bool) error {
	y.answers[f.Claim] = text
	y.said++
	return nil
}
