package ci

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

var audited = db.Q[string](`SELECT kind FROM audit WHERE account_id = 'acme' AND kind LIKE 'ci.%' ORDER BY seq`)

var zero, two = 0, 2

// yard holds the checks of acme/web.
type yard struct {
	*Service
	t       *testing.T
	repo    repo.Ref
	queued  []string // the tasks of checks, oldest first
	full    bool     // there is no room for a task
	stopped []string // tasks that were cancelled
	ended   []End

	clock  atomic.Int64 // Unix microseconds
	said   map[string][]string
	dir    string // of objects
	folder *blob.Folder
	store  *unsteady
}

func (y *yard) now() time.Time { return time.UnixMicro(y.clock.Load()).UTC() }

func (y *yard) later(d time.Duration) { y.clock.Add(d.Microseconds()) }

// LookedAfter implements Pulls.
func (*yard) LookedAfter(*db.Tx, string, string) (bool, error) { return true, nil }

// Page implements Pulls.
func (*yard) Page(prID string) string { return "https://yard.example/" + prID }

// Stop implements Tasks.
func (y *yard) Stop(_ *db.Tx, taskID string) error {
	y.stopped = append(y.stopped, taskID)
	return nil
}

// Check implements Tasks.
func (y *yard) Check(_ *db.Tx, r repo.Ref, prID, sha string) (string, error) {
	if y.full {
		return "", errors.New("full")
	}
	task := fmt.Sprintf("%s-%s-%s-%d", r.Name, prID, sha, len(y.queued))
	y.queued = append(y.queued, task)
	return task, nil
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := &yard{t: t, said: map[string][]string{}, dir: filepath.Join(t.TempDir(), "blob")}
			y.clock.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro())
			y.folder = blob.NewFolder(y.dir, "http://yard.example", seal.New(), y.now)
			y.store = &unsteady{Store: y.folder}
			y.begin(dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.now}))
			fn(t, y)
		})
	}
}

func (y *yard) begin(d *db.DB) {
	hub := event.NewHub()
	y.Service = New(Needs{
		DB: d, Hub: hub, Due: duetest.New(d, hub), Logger: slog.New(slog.DiscardHandler), Hosts: codehost.NewHosts(nil), Tasks: y,
		Logs: y, Objects: y.store, Pulls: y,
		Intents: intent.New(intent.Needs{
			DB: d, Due: duetest.New(d, event.NewHub()), Hosts: codehost.NewHosts(nil), Logger: slog.New(slog.DiscardHandler),
		}),
	})
	Ended.On(d, func(tx *db.Tx, e End) error {
		tx.AfterCommit(func() { y.ended = append(y.ended, e) })
		return nil
	})
	y.write(func(tx *db.Tx) error {
		for _, account := range []string{"acme", "rival"} {
			if err := seed.Add(tx, seed.Account{ID: account}); err != nil {
				return err
			}
		}
		id, err := repo.Install(tx, codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}, "main", true)
		if err != nil {
			return err
		}
		if _, err := seed.SetPolicy.Exec(tx, id, "version: 1\nchecks: {command: make}\n"); err != nil {
			return err
		}
		if err := seed.Add(tx, seed.Pull{ID: "pr", Account: "acme", Repo: id, Number: 1, Head: "a"}); err != nil {
			return err
		}
		y.repo, _, err = repo.ByID(tx, id)
		return err
	})
}

func (y *yard) ctx() context.Context { return db.WithAccount(context.Background(), "acme") }

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(y.ctx(), fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) queue(sha string) (task string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return y.Queue(tx, y.repo, "pr", sha) })
	return y.queued[len(y.queued)-1]
}

func (y *yard) finish(o Outcome) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return y.Finish(tx, o) })
}

// want compares the states of all checks, newest first, and what was recorded.
func (y *yard) want(states, kinds string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		rows, err := Rows(tx, nil, 10)
		if err != nil {
			return err
		}
		var got []string
		for _, r := range rows {
			if r.Repo != "acme/web" || r.Command != "make" || *r.PRID != "pr" {
				y.t.Errorf("%+v", r)
			}
			got = append(got, r.SHA+" "+string(r.Status))
		}
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != states {
			y.t.Errorf("the checks are %q, want %q", text, states)
		}
		said, err := audited.All(tx)
		if text := strings.Join(said, " "); text != kinds {
			y.t.Errorf("recorded: %q, want %q", text, kinds)
		}
		return err
	})
}

// A check is queued, runs, waits again when its box is lost, and ends once.
func TestCheck(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		task := y.queue("a")
		moved := func(running bool) {
			t.Helper()
			y.write(func(tx *db.Tx) error { return y.Moved(tx, task, running) })
		}
		moved(false)
		y.want("a queued", "")
		moved(true)
		y.want("a running", "ci.running")
		moved(false)
		y.want("a queued", "ci.running")
		moved(true)

		y.finish(Outcome{TaskID: "another", ExitCode: &zero})
		y.finish(Outcome{TaskID: task, RunID: "r", BoxID: "b", ExitCode: &two, Output: "no rule"})
		y.finish(Outcome{TaskID: task, Why: "late"})
		moved(true)
		y.want("a failed", "ci.running ci.running ci.failed")
		if want := (End{PRID: "pr", SHA: "a", RepoID: y.repo.ID, ExitCode: &two}); len(y.ended) != 1 ||
			!reflect.DeepEqual(y.ended[0], want) {
			t.Errorf("told: %+v", y.ended)
		}
		y.write(func(tx *db.Tx) error {
			r, ok, err := Of(tx, "pr", "a")
			if !ok || r.Command != "make" || *r.ExitCode != 2 || r.Output != "no rule" {
				t.Errorf("%+v %v", r, ok)
			}
			if _, ok, err := Of(tx, "pr", "b"); ok || err != nil {
				t.Errorf("a head that was never checked: %v %v", ok, err)
			}
			return err
		})

		// The head comes back, and is checked anew in its row.
		task = y.queue("a")
		y.want("a queued", "ci.running ci.running ci.failed")
		y.finish(Outcome{TaskID: y.queued[0], RunID: "r", ExitCode: &two}) // of the check before
		y.finish(Outcome{TaskID: task, RunID: "s", ExitCode: &zero})
		y.want("a passed", "ci.running ci.running ci.failed ci.passed")
		if len(y.ended) != 2 || !y.ended[1].Passed {
			t.Errorf("told: %+v", y.ended)
		}
	})
}

// Without a task in the queue there is no check.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.full = true
		if err := y.DB.Write(y.ctx(), func(tx *db.Tx) error { return y.Queue(tx, y.repo, "pr", "a") }); err == nil {
			t.Error("it was queued")
		}
		y.want("", "")
	})
}

// A check whose task ended without a result is lost, or was cancelled. If a box ends
// the run of a lost check after all, its result counts.
func TestLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for sha, status := range map[string]string{"a": "failed", "b": "cancelled", "c": "running"} {
			task := y.queue(sha)
			y.write(func(tx *db.Tx) error {
				return seed.Add(tx, seed.Task{ID: task, Account: "acme", Repo: y.repo.ID, Status: status, Branch: new("")})
			})
		}
		y.Pass(context.Background())
		y.Pass(context.Background())
		kinds := make([]string, 0, 2)
		y.write(func(tx *db.Tx) (err error) {
			kinds, err = audited.All(tx)
			return err
		})
		if slices.Sort(kinds); !slices.Equal(kinds, []string{"ci.cancelled", "ci.lost"}) || len(y.ended) != 2 {
			t.Errorf("recorded %v, told %+v", kinds, y.ended)
		}
		for _, e := range y.ended {
			if e.Passed || e.ExitCode != nil || !strings.HasPrefix(e.Why, "the check could not be run: ") {
				t.Errorf("told: %+v", e)
			}
		}
		i := slices.IndexFunc(y.queued, func(task string) bool { return strings.Contains(task, "-a-") })
		y.finish(Outcome{TaskID: y.queued[i], RunID: "r", ExitCode: &zero})
		if len(y.ended) != 3 || !y.ended[2].Passed {
			t.Errorf("told: %+v", y.ended)
		}
	})
}

// Rows does not list the checks of another account.
func TestRowsAreTheAccounts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.queue("a")
		err := y.DB.Write(db.WithAccount(context.Background(), "rival"), func(tx *db.Tx) error {
			rows, err := Rows(tx, nil, 10)
			if len(rows) > 0 {
				t.Errorf("%+v", rows)
			}
			return errors.Join(err, y.Finish(tx, Outcome{TaskID: y.queued[0], ExitCode: &zero}), y.Moved(tx, y.queued[0], true))
		})
		if err != nil {
			t.Error(err)
		}
		y.want("a queued", "")
	})
}
