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
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/flake"
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
	lose    int   // answers to re-runs
	refuse  error // of re-runs
}

func (f *forge) Can(c codehost.Capability) bool { return c == codehost.KeepChecks }

func (f *forge) ChecksOf(_ context.Context, _ codehost.Repo, sha string, _ codehost.Tag) (codehost.CheckSet, codehost.Tag, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return codehost.CheckSet{SHA: sha, Checks: slices.Clone(f.sets[sha])}, "", nil
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

func (f *forge) Compare(context.Context, codehost.Repo, string, string) (codehost.Comparison, error) {
	return codehost.Comparison{Ahead: 1, Paths: f.changed}, nil
}

func (f *forge) ReadFile(context.Context, codehost.Repo, string, string) ([]byte, string, error) {
	return nil, "blob", nil
}

// bench is a head of a pull request at a host that keeps checks.
type bench struct {
	*forge
	t       *testing.T
	db      *db.DB
	nodes   []*Service
	intents *intent.Service
	repo    repo.Ref
	clock   atomic.Int64
	said    []HostEnd
	broken  []Broken
	left    atomic.Bool // nobody looks after the pull requests
}

// Tended implements Pulls.
func (b *bench) Tended(*db.Tx, string, string) (bool, error) { return !b.left.Load(), nil }

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
			for range 2 {
				hub := event.NewHub()
				intents := intent.New(intent.Needs{DB: b.db, Hub: hub, Hosts: hosts, Logger: log})
				b.nodes = append(b.nodes, New(Needs{
					DB: b.db, Hub: hub, Logger: log, Hosts: hosts, Tasks: &yard{}, Logs: &yard{}, Objects: folder, Pulls: b,
					Intents: intents,
				}))
				b.intents = intents
			}
			HostChecked.On(b.db, func(tx *db.Tx, e HostEnd) error {
				tx.AfterCommit(func() { b.said = append(b.said, e) })
				return nil
			})
			BaseBroke.On(b.db, func(tx *db.Tx, e Broken) error {
				tx.AfterCommit(func() { b.broken = append(b.broken, e) })
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
	c.State, c.Conclusion = codehost.CheckPassed, "success"
	if log != "" {
		c.State, c.Conclusion, b.logs[c.Job] = codehost.CheckFailed, "failure", log
	}
	if name == "status" {
		c.Job, c.Source = "", "status"
	}
}

// pass lets time go by, reads the heads and carries the intents out.
func (b *bench) pass(d time.Duration) {
	b.clock.Add(d.Microseconds())
	b.nodes[0].readHeads(b.t.Context())
	b.intents.Pass(b.t.Context())
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

const (
	goLog     = "--- FAIL: TestLease (2.01s)\n    store_test.go:88: lease expired after 2.013s, want > 5s\nFAIL\nFAIL\texample.com/shop/store\t2.1s\n"
	pytestLog = "E   AssertionError: assert 503 == 200\nFAILED tests/test_api.py::test_list[eu] - AssertionError: assert 503 == 200\n"
	jestLog   = "FAIL src/cart.test.js\n  ● cart › adds two\n\n    thrown: \"Exceeded timeout of 5000 ms for a test.\n"
	cargoLog  = "test net::tests::binds ... FAILED\n\nfailures:\n\n---- net::tests::binds stdout ----\nport 127.0.0.1:41873 in use\n"
	gradleLog = "OrderTest > totals() FAILED\n    org.opentest4j.AssertionFailedError: expected: <3> but was: <2>\n"
	loginLog  = "  1) [chromium] › login.spec.ts:12:5 › signs in\n\n    Error: Timed out 5000ms waiting for expect(locator).toBeVisible()\n"
	logoutLog = "  1) [chromium] › logout.spec.ts:12:5 › signs out\n\n    Error: Timed out 5000ms waiting for expect(locator).toBeVisible()\n"
)

// go: the base failed so and passed later; the failure goes away.
func TestKnownAtTheBase(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		for n, log := range []string{goLog, "", goLog, ""} {
			b.base(commit(n + 1))
			b.ends(commit(n+1), "test", log)
			b.pass(time.Minute)
		}
		b.changed = []string{"store/store_test.go"}
		b.head(commit(9))
		b.ends(commit(9), "test", goLog)
		b.pass(time.Minute)
		b.asked(1)
		b.pass(time.Second)
		b.wants(commit(9), HostPending, "")
		if _, ok := b.failure(commit(9)); ok {
			b.t.Error("an agent would be told of a known flake")
		}
		b.ends(commit(9), "test", "")
		b.pass(lookAgain)
		b.wants(commit(9), HostPassed, "")
		out, err := b.nodes[0].flakes(db.WithAccount(b.t.Context(), "acme"), flakesIn{Owner: "acme", Repo: "web"})
		if err != nil || len(out.Data) != 1 || out.Data[0].Seen != 3 || out.Data[0].Runs != 5 || !out.Data[0].Often {
			b.t.Errorf("%+v, %v", out.Data, err)
		}
		if out, err = b.nodes[0].flakes(db.WithAccount(b.t.Context(), "rival"), flakesIn{Owner: "acme", Repo: "web"}); err == nil {
			b.t.Errorf("another account reads %+v", out)
		}
	})
}

// pytest: never seen, and the change touches the test.
func TestNewAtOnce(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.changed = []string{"tests/test_api.py"}
		b.head(commit(1))
		b.ends(commit(1), "test", pytestLog)
		b.pass(time.Second)
		b.wants(commit(1), HostFailed, "")
		b.asked(0)
		if f, ok := b.failure(commit(1)); !ok || len(f.Repair) != 1 || !strings.Contains(f.Repair[0], "tests/test_api.py::test_list[eu]") {
			b.t.Errorf("%+v, %v", f, ok)
		}
	})
}

// jest: on two other pull requests; run again, and the same again.
func TestRealWhenItFailsAgain(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.head(commit(1))
		b.ends(commit(1), "test", jestLog)
		b.pass(time.Second)
		b.asked(1)
		b.wants(commit(1), HostPending, "")
		b.ends(commit(1), "test", jestLog)
		b.pass(lookAgain)
		b.wants(commit(1), HostFailed, "")
		b.asked(1)
		if len(b.said) != 1 || b.said[0].Result != HostFailed {
			b.t.Errorf("pull requests were told %+v", b.said)
		}
	})
}

// cargo: never seen and not touched; run again, it passes.
func TestFirstEvidence(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.changed = []string{"README.md"}
		b.head(commit(1))
		b.ends(commit(1), "test", cargoLog)
		b.ends(commit(1), "lint", "")
		b.pass(time.Second)
		b.ends(commit(1), "test", "")
		b.pass(lookAgain)
		b.wants(commit(1), HostPassed, "")
	})
}

// An agent that repairs a new failure is told which one comes and goes.
func TestKnownIsLeftAlone(t *testing.T) {
	t.Parallel()
	judging(t, func(t *testing.T, b *bench) {
		b.head(commit(1))
		b.ends(commit(1), "test", goLog)
		b.pass(time.Second)
		b.ends(commit(1), "test", "")
		b.pass(lookAgain)
		b.changed = []string{"store/new_test.go"}
		b.head(commit(2))
		b.ends(commit(2), "test", "--- FAIL: TestNew (0.01s)\n    new_test.go:3: wrong\n"+goLog)
		b.pass(time.Second)
		b.wants(commit(2), HostFailed, "")
		f, ok := b.failure(commit(2))
		if !ok || len(f.Repair) != 1 || !strings.Contains(f.Repair[0], "TestNew") || len(f.Leave) != 1 ||
			!strings.Contains(f.Leave[0], "TestLease") || !strings.Contains(f.Leave[0], "(1 of 2 runs, which is often)") {
			t.Errorf("%+v, %v", f, ok)
		}
	})
}

// gradle: the base's latest run fails so, too.
func TestBaseBroken(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.base(commit(1))
		b.ends(commit(1), "test", gradleLog)
		b.pass(time.Second)
		b.head(commit(2))
		b.ends(commit(2), "test", gradleLog)
		b.pass(time.Second)
		b.ends(commit(2), "test", gradleLog)
		b.pass(lookAgain)
		b.wants(commit(2), HostPending, HoldBase)
		b.head(commit(3)) // waits without a re-run
		b.ends(commit(3), "test", gradleLog)
		b.pass(time.Second)
		b.wants(commit(3), HostPending, HoldBase)
		b.asked(1)
		if len(b.broken) != 1 {
			b.t.Errorf("people were told %+v", b.broken)
		}
		if _, ok := b.failure(commit(3)); ok {
			b.t.Error("an agent would repair the base")
		}
		b.base(commit(4))
		b.ends(commit(4), "test", "")
		b.pass(time.Second)
		b.pass(time.Second)
		b.wants(commit(2), HostFailed, "")
		b.wants(commit(3), HostFailed, "")
	})
}

// playwright: run again, another test fails, which is judged anew; two re-runs at most.
func TestOtherFailure(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.head(commit(1))
		for n, log := range []string{loginLog, logoutLog, loginLog} {
			b.wants(commit(1), HostPending, "")
			b.ends(commit(1), "test", log)
			b.pass(lookAgain)
			b.asked(min(n+1, flake.MaxReruns))
		}
		b.wants(commit(1), HostFailed, "")
	})
}

// A machine that fails is no fault of the change, whatever it touches.
func TestInfra(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.head(commit(1))
		for range flake.MaxReruns + 1 {
			b.ends(commit(1), "test", "write /tmp/x: No space left on device\n")
			b.pass(lookAgain)
		}
		b.asked(flake.MaxReruns)
		b.wants(commit(1), HostPending, HoldInfra)
	})
}

// A status has no job: it fails plainly. So does a check that the host does not run again.
func TestNotRerunnable(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.head(commit(1))
		b.ends(commit(1), "status", "no")
		b.pass(time.Second)
		b.wants(commit(1), HostFailed, "")
		b.refuse = codehost.ErrNotRerunnable
		b.head(commit(2))
		b.ends(commit(2), "test", cargoLog)
		b.pass(time.Second)
		b.pass(time.Second)
		b.wants(commit(2), HostFailed, "")
		b.asked(0)
	})
}

// The jobs of pull requests that nobody looks after are not run again.
func TestUntended(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.left.Store(true)
		b.head(commit(1))
		b.ends(commit(1), "test", cargoLog)
		b.pass(time.Second)
		b.wants(commit(1), HostFailed, "")
		b.asked(0)
	})
}

// The answer to a re-run is lost, and two nodes read the heads at once: it happens once.
func TestRerunOnce(t *testing.T) {
	t.Parallel()
	judging(t, func(t *testing.T, b *bench) {
		b.lose = 1
		b.head(commit(1))
		b.ends(commit(1), "test", cargoLog)
		h := headRow{RepoID: b.repo.ID, SHA: commit(1), AccountID: "acme", BaseRef: "main", Side: sidePull, PRID: "pr", Result: HostPending}
		h.SettleAt = time.UnixMicro(b.clock.Load())
		var both sync.WaitGroup
		for _, node := range b.nodes {
			both.Go(func() {
				if err := node.readHead(db.WithAccount(t.Context(), "acme"), h); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		b.pass(time.Second) // the answer is lost
		b.pass(time.Minute) // and asked for again
		b.asked(1)
		for _, times := range b.reruns {
			if times != 2 {
				t.Errorf("the host was called %d times", times)
			}
		}
		b.ends(commit(1), "test", "")
		b.pass(lookAgain)
		b.wants(commit(1), HostPassed, "")
	})
}

// A repository has so many re-runs an hour; what is over waits for the next one.
func TestRerunsOfAnHour(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		for n := range flake.MaxRepoReruns + 1 {
			b.head(commit(n + 1))
			b.ends(commit(n+1), "test", cargoLog)
		}
		b.pass(time.Second)
		b.asked(flake.MaxRepoReruns)
		b.pass(time.Hour + time.Minute)
		b.asked(flake.MaxRepoReruns + 1)
	})
}

// A required check that never reports, and one that waits for a person at the host.
func TestHeldForPeople(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.rules.Required = []codehost.RequiredCheck{{Name: "deploy"}}
		b.head(commit(1))
		b.ends(commit(1), "test", "")
		b.pass(time.Minute)
		b.wants(commit(1), HostPending, "")
		b.pass(time.Hour)
		b.wants(commit(1), HostPending, HoldMissing)
		if n := len(b.said); n != 1 || !strings.Contains(b.said[0].Why, "deploy") {
			b.t.Errorf("pull requests were told %+v", b.said)
		}
		b.ends(commit(1), "deploy", "")
		b.pass(lookHeld)
		b.wants(commit(1), HostPassed, "")
		b.rules.Required = nil
		b.head(commit(2))
		b.ends(commit(2), "test", "x")
		b.sets[commit(2)][0].Conclusion = actionRequired
		b.pass(time.Second)
		b.wants(commit(2), HostPending, HoldApproval)
		if _, ok := b.failure(commit(2)); ok {
			b.t.Error("an agent would repair what waits for a person")
		}
	})
}

// What is too old is forgotten.
func TestTidy(t *testing.T) {
	t.Parallel()
	judging(t, func(t *testing.T, b *bench) {
		b.head(commit(1))
		b.ends(commit(1), "test", cargoLog)
		b.ends(commit(1), "lint", "")
		b.pass(time.Second)
		for _, step := range []struct {
			after           time.Duration
			ends, excerpted int
		}{{time.Hour, 2, 1}, {keepTexts, 1, 0}, {keepFailures, 0, 0}} {
			b.clock.Add(step.after.Microseconds())
			b.nodes[0].tidy(t.Context())
			b.write(func(tx *db.Tx) error {
				all, err := endsOf.All(tx, b.repo.ID, commit(1))
				texts := 0
				for _, e := range all {
					if e.Excerpt != "" {
						texts++
					}
				}
				if len(all) != step.ends || texts != step.excerpted {
					t.Errorf("after %s: %d ends with %d texts, want %d with %d", step.after, len(all), texts, step.ends, step.excerpted)
				}
				return err
			})
		}
	})
}
