package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestServerKilledMidRun(t *testing.T) {
	st := newStack(t)
	st.script("work", work)
	b := st.join("box")
	id := st.file("work", "Outlive the server")
	r := st.live(id, 1)
	ticks := b.ticks(r)

	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 10 })
	st.server.kill()
	before := len(st.times(ticks))
	st.until("the agent works on without a server", func() bool { return len(st.times(ticks)) > before+10 })
	st.serve()
	stored := st.counted(r)
	st.until("what was said meanwhile is stored", func() bool { return len(st.lines(r)) > max(stored, before+10) })
	b.release(r)
	st.merges(id)

	if got := st.outcomes(id); got != "succeeded" {
		t.Errorf("the restart changed the run: %s", got)
	}
	if n := st.counted(st.tries(id)[0]); n < before+10 {
		t.Errorf("%d lines are stored, %d were printed before the restart alone", n, before)
	}
	st.verify()
}

func TestServerKilledInTheMiddleOfAnAnswer(t *testing.T) {
	scenario := filepath.Join(root, "answer.yml")
	err := os.WriteFile(scenario, []byte(`scenarios:
  - name: slow
    match: Talk on
    steps:
      - text: I say this so slowly that nobody hears the end of it before the server is gone, and the last of these words is finis
        slow_ms: 100
        shell: |
          `+deliver+`
      - text: All is delivered.
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	st := newStack(t, "--scenario", scenario)
	st.call(http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	st.join("box")
	id := st.file("default", "Talk on")
	r := st.live(id, 1)
	st.until("the model is talking", func() bool { return len(st.lines(r)) > 0 })
	st.server.kill()
	st.serve()
	st.merges(id)
	if got := st.outcomes(id); got != "succeeded" {
		t.Errorf("the restart changed the run: %s", got)
	}
	st.verify()
}

// A task that is lost five times in a row is given up, so each has four faults before it at
// most.
func TestEverythingKilledAgainAndAgain(t *testing.T) {
	st := newStack(t, "--lease", short)
	// About a second of work, all of it printed.
	st.script("work", `for i in $(seq 1 20); do echo "line $i"; sleep 0.05; done; `+deliver)
	first, second := st.join("first"), st.join("second")
	for range 2 {
		ids := []string{st.file("work", "Survive"), st.file("work", "Survive")}
		for _, again := range []func(){
			func() { st.server.kill(); st.serve() },
			func() { first.kill(); first.run() },
			func() { st.server.kill(); first.kill(); st.serve(); first.run() },
			func() { second.kill(); st.server.kill(); st.serve(); second.run() },
		} {
			ids = append(ids, st.file("work", "Survive")) // there is work, however fast this machine is
			st.until("there is work in progress", func() bool {
				return slices.ContainsFunc(ids, func(id string) bool { s := st.task(id).Status; return s == "running" || s == "claimed" })
			})
			again()
		}
		st.survived(ids)
	}
	st.verify()
}

// survived waits until tasks have merged, and checks that no try was charged for a fault.
func (st *stack) survived(ids []string) {
	st.t.Helper()
	for _, id := range ids {
		st.merges(id)
		for _, r := range st.tries(id) {
			if r.Outcome != "succeeded" && r.FailureKind != "box_lost" && r.FailureKind != "lease_expired" {
				st.t.Errorf("run %s was charged for what it could not help: %s, %s", r.ID, r.FailureKind, r.EndedReason)
			}
			if n := st.counted(r); r.Outcome == "succeeded" && n != 20 {
				st.t.Errorf("run %s said %d lines of 20", r.ID, n)
			}
		}
	}
}
