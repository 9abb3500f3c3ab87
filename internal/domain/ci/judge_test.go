package ci

import (
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/flake"
)

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
		all := flakesIn{PageIn: op.FirstPage("ci.flakes", flakesPaging), Owner: "acme", Repo: "web"}
		out, err := b.nodes[0].flakes(db.WithAccount(b.t.Context(), "acme"), all)
		if err != nil || len(out.Data) != 1 || out.Data[0].Seen != 3 || out.Data[0].Runs != 5 || !out.Data[0].Often {
			b.t.Errorf("%+v, %v", out.Data, err)
		}
		if out, err = b.nodes[0].flakes(db.WithAccount(b.t.Context(), "rival"), all); err == nil {
			b.t.Errorf("another account reads %+v", out)
		}
	})
}

// A head whose checks have changed while they were read is read once more, and no other node
// reads it meanwhile.
func TestChangedWhileRead(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.changed = []string{"tests/test_api.py"}
		b.head(commit(1))
		b.ends(commit(1), "test", pytestLog)
		b.during = func() {
			b.ends(commit(1), "test", "")
			ctx := db.WithAccount(b.t.Context(), "acme")
			if err := b.nodes[1].HostChanged(ctx, b.repo, commit(1)); err != nil {
				b.t.Error(err)
			}
			duetest.Pass(b.t.Context(), b.t, b.kernels[1])
			b.wants(commit(1), HostPending, "")
		}
		b.pass(time.Minute)
		b.wants(commit(1), HostPassed, "")
		if n := len(b.said); n == 0 || b.said[n-1].Result != HostPassed {
			b.t.Errorf("told %+v", b.said)
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
		if len(b.healed) != 0 {
			b.t.Errorf("it is said to be healed: %+v", b.healed)
		}
		b.base(commit(4))
		b.ends(commit(4), "test", "")
		b.pass(time.Second)
		b.pass(time.Second)
		b.wants(commit(2), HostFailed, "")
		b.wants(commit(3), HostFailed, "")
		if len(b.healed) != 1 || b.healed[0] != (Healed{RepoID: b.repo.ID, BaseRef: "main"}) {
			b.t.Errorf("healed: %+v", b.healed)
		}
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
				if _, err := node.readChecks(db.WithAccount(t.Context(), "acme"), h); err != nil {
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
		b.sets[commit(2)][0].End = codehost.EndHeld
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

// A failure on two other pull requests is no verdict: the job is run again, and a failure
// that comes back is one to repair. Nor does it excuse a change that touches the test.
func TestSeenElsewhere(t *testing.T) {
	t.Parallel()
	judging(t, func(t *testing.T, b *bench) {
		b.left.Store(true) // nobody looks after those two
		for n := range 2 {
			b.head(commit(n + 1))
			b.ends(commit(n+1), "test", pytestLog)
		}
		b.pass(time.Second)
		b.asked(0)
		b.left.Store(false)
		b.head(commit(3))
		b.ends(commit(3), "test", pytestLog)
		b.pass(time.Minute)
		b.asked(1)
		b.wants(commit(3), HostPending, "")
		b.ends(commit(3), "test", pytestLog)
		b.pass(lookAgain)
		b.wants(commit(3), HostFailed, "")
		if f, ok := b.failure(commit(3)); !ok || len(f.Leave) != 0 || len(f.Repair) != 1 || strings.Contains(f.Repair[0], " runs") {
			t.Errorf("what was seen elsewhere is told as %+v, %v", f, ok)
		}
		b.changed = []string{"tests/test_api.py"}
		b.head(commit(4))
		b.ends(commit(4), "test", pytestLog)
		b.pass(time.Minute)
		b.asked(1)
		b.wants(commit(4), HostFailed, "")
	})
}

// A failure that came and went in groups of the merge queue is known, as one of the base.
func TestKnownInGroups(t *testing.T) {
	t.Parallel()
	judging(t, func(t *testing.T, b *bench) {
		for n, log := range []string{pytestLog, ""} {
			if err := b.nodes[0].Grouped(db.WithAccount(t.Context(), "acme"), b.repo, "main", commit(n+1)); err != nil {
				t.Fatal(err)
			}
			b.ends(commit(n+1), "test", log)
			b.pass(time.Minute)
		}
		b.changed = []string{"tests/test_api.py"}
		b.head(commit(9))
		b.ends(commit(9), "test", pytestLog)
		b.pass(time.Minute)
		b.asked(1)
		if _, ok := b.failure(commit(9)); ok {
			t.Error("an agent would be told of a known flake")
		}
	})
}

// A workflow that waits for a person holds the head if a required check is missing, and
// does not if all of them have passed.
func TestHeldWorkflowBesideRequired(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.rules.Required = []codehost.RequiredCheck{{Name: "build"}}
		b.head(commit(1))
		b.sets[commit(1)] = []codehost.HostCheck{{
			ID: "workflow1", Name: "CI", Source: "workflow", State: codehost.CheckFailed, End: codehost.EndHeld,
		}}
		b.pass(time.Minute)
		b.wants(commit(1), HostPending, HoldApproval)
		b.ends(commit(1), "build", "")
		b.pass(lookHeld)
		b.wants(commit(1), HostPassed, "")
	})
}
