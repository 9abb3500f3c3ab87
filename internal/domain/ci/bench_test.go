package ci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// forge is a host that keeps checks and their logs. Its git knows one blob of every file.
type forge struct {
	codehost.NoForge
	codehost.Host
	mu      sync.Mutex
	sets    map[string][]codehost.HostCheck // by commit
	logs    map[string]string               // by job
	rules   codehost.BranchRules
	changed []string // by the pull request
	next    int
	reruns  map[codehost.Once]int
	own     []codehost.OwnCheck // what the host was told of checks of ours, oldest first
	silent  error               // of SetCheck
	lose    int                 // answers to re-runs
	refuse  error               // of re-runs
	during  func()              // called once, before the answer of ChecksOf is given
}

func (f *forge) Can(c codehost.Capability) bool { return c == codehost.KeepChecks }

func (f *forge) ChecksOf(_ context.Context, _ codehost.Repo, sha string, _ codehost.Tag) (codehost.CheckSet, codehost.Tag, error) {
	f.mu.Lock()
	set := codehost.CheckSet{SHA: sha, Checks: slices.Clone(f.sets[sha])}
	during := f.during
	f.during = nil
	f.mu.Unlock()
	if during != nil {
		during()
	}
	return set, "", nil
}

func (f *forge) BranchRules(context.Context, codehost.Repo, string, codehost.Tag) (codehost.BranchRules, codehost.Tag, error) {
	return f.rules, "", nil
}

func (f *forge) CheckLog(_ context.Context, _ codehost.Repo, job string, _ int64) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return io.NopCloser(strings.NewReader(f.logs[job])), nil
}

// RerunFailed implements codehost.Forge. The checks begin again under new ids.
func (f *forge) RerunFailed(_ context.Context, _ codehost.Repo, once codehost.Once, ids []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return f.refuse
	}
	if f.reruns[once]++; f.reruns[once] == 1 {
		for sha := range f.sets {
			for i, c := range f.sets[sha] {
				if slices.Contains(ids, c.ID) {
					f.next++
					f.sets[sha][i] = codehost.HostCheck{
						ID: fmt.Sprint("check", f.next), Name: c.Name, Source: c.Source, State: codehost.CheckPending,
						Job: fmt.Sprint("job", f.next),
					}
				}
			}
		}
	}
	if f.lose > 0 {
		f.lose--
		return &codehost.BusyError{Cause: errors.New("the answer was lost")}
	}
	return nil
}

// SetCheck implements codehost.Forge.
func (f *forge) SetCheck(_ context.Context, _ codehost.Repo, _ codehost.Once, c codehost.OwnCheck) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent != nil {
		return "", f.silent
	}
	f.own = append(f.own, c)
	return "own", nil
}

func (f *forge) Compare(context.Context, codehost.Repo, string, string) (codehost.Comparison, error) {
	return codehost.Comparison{Ahead: 1, Paths: f.changed}, nil
}

func (f *forge) ReadFile(context.Context, codehost.Repo, string, string) ([]byte, string, error) {
	return nil, "blob", nil
}

// bench is a head of a pull request at a host that keeps checks.
type bench struct {
	hears sync.Mutex
	*forge
	t       *testing.T
	db      *db.DB
	nodes   []*Service
	kernels []*due.Kernel
	intents *intent.Service
	repo    repo.Ref
	clock   atomic.Int64
	said    []HostEnd
	broken  []Broken
	healed  []Healed
	left    atomic.Bool // nobody looks after the pull requests
	tasks   *yard       // that run checks
}

// Page implements Pulls.
func (*bench) Page(prID string) string { return "https://yard.example/" + prID }

// LookedAfter implements Pulls.
func (b *bench) LookedAfter(*db.Tx, string, string) (bool, error) { return !b.left.Load(), nil }

// hear takes what is told after a commit, by workers at the same time.
func (b *bench) hear(take func()) {
	b.hears.Lock()
	defer b.hears.Unlock()
	take()
}

func judging(t *testing.T, fn func(*testing.T, *bench)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			b := &bench{t: t, forge: &forge{
				sets: map[string][]codehost.HostCheck{}, logs: map[string]string{}, reruns: map[codehost.Once]int{},
			}}
			b.clock.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro())
			now := func() time.Time { return time.UnixMicro(b.clock.Load()).UTC() }
			b.db = dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: now})
			hosts := codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: b.forge, Forge: b.forge}})
			log := slog.New(slog.DiscardHandler)
			folder := blob.NewFolder(filepath.Join(t.TempDir(), "blob"), "http://yard.example", seal.New(), now)
			b.tasks = &yard{t: t}
			for range 2 {
				hub := event.NewHub()
				intents := intent.New(intent.Needs{DB: b.db, Due: duetest.New(b.db, hub), Hosts: hosts, Logger: log})
				intent.LineMoved.On(b.db, intents.FollowLine)
				b.kernels = append(b.kernels, duetest.New(b.db, hub))
				b.nodes = append(b.nodes, New(Needs{
					DB: b.db, Hub: hub, Due: b.kernels[len(b.nodes)], Logger: log, Hosts: hosts, Tasks: b.tasks, Logs: b.tasks,
					Objects: folder, Pulls: b, Intents: intents,
				}))
				b.intents = intents
			}
			HostChecked.On(b.db, func(tx *db.Tx, e HostEnd) error {
				tx.AfterCommit(func() { b.hear(func() { b.said = append(b.said, e) }) })
				return nil
			})
			BaseBroke.On(b.db, func(tx *db.Tx, e Broken) error {
				tx.AfterCommit(func() { b.hear(func() { b.broken = append(b.broken, e) }) })
				return nil
			})
			BaseHealed.On(b.db, func(tx *db.Tx, e Healed) error {
				tx.AfterCommit(func() { b.hear(func() { b.healed = append(b.healed, e) }) })
				return nil
			})
			b.write(func(tx *db.Tx) error {
				if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
					return err
				}
				id, err := repo.Install(tx, codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}, "main", true)
				if err != nil {
					return err
				}
				b.repo, _, err = repo.ByID(tx, id)
				return err
			})
			fn(t, b)
		})
	}
}

func (b *bench) write(fn func(*db.Tx) error) {
	b.t.Helper()
	if err := b.db.Write(db.WithAccount(b.t.Context(), "acme"), fn); err != nil {
		b.t.Fatal(err)
	}
}

// commit is the nth commit.
func commit(n int) string { return fmt.Sprintf("%040x", n) }

// head follows a commit as the head of a pull request, and base one of the default branch.
func (b *bench) head(sha string) {
	b.t.Helper()
	b.write(func(tx *db.Tx) error { return b.nodes[0].Follow(tx, b.repo, "pr-"+sha, "main", sha) })
}

func (b *bench) base(sha string) {
	b.t.Helper()
	b.write(func(tx *db.Tx) error { return b.nodes[0].Pushed(tx, b.repo, "main", sha) })
}

// ends ends a job on a commit with a log; "" passes.
func (b *bench) ends(sha, name, log string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.sets[sha], func(c codehost.HostCheck) bool { return c.Name == name })
	if at < 0 {
		b.next++
		at = len(b.sets[sha])
		b.sets[sha] = append(b.sets[sha], codehost.HostCheck{
			ID: fmt.Sprint("check", b.next), Name: name, Source: "ci", Job: fmt.Sprint("job", b.next),
		})
	}
	c := &b.sets[sha][at]
	c.State = codehost.CheckPassed
	if log != "" {
		c.State, b.logs[c.Job] = codehost.CheckFailed, log
	}
	if name == "status" {
		c.Job, c.Source = "", "status"
	}
}

// pass lets time go by, reads what is due and carries the intents out.
func (b *bench) pass(d time.Duration) {
	b.clock.Add(d.Microseconds())
	duetest.Pass(b.t.Context(), b.t, b.kernels[0])
	duetest.Pass(b.t.Context(), b.t, b.intents.Due)
}

// wants compares what a head's checks say.
func (b *bench) wants(sha, result, hold string) {
	b.t.Helper()
	b.write(func(tx *db.Tx) error {
		h, err := headOf.One(tx, sha)
		if h.Result != result || h.Hold != hold {
			b.t.Errorf("%s is %s %q (%s), want %s %q", sha[36:], h.Result, h.Hold, h.Why, result, hold)
		}
		return err
	})
}

var headOf = db.Q[struct{ Result, Hold, Why string }](`SELECT result, hold, why FROM host_heads WHERE sha = $1`)

// asked is how often the host was asked to run jobs again.
func (b *bench) asked(want int) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.reruns) != want {
		b.t.Errorf("%d re-runs, want %d", len(b.reruns), want)
	}
}

// failure is what an agent would be told of a head.
func (b *bench) failure(sha string) (f HostFailure, ok bool) {
	b.t.Helper()
	b.write(func(tx *db.Tx) (err error) {
		f, ok, err = AtHost(tx, b.repo.ID, sha)
		return err
	})
	return f, ok
}
