package e2e

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hastens sends a second signal to a process that is being stopped, and checks that it
// waits for nothing after it.
func (st *stack) hastens(p *process, s syscall.Signal) {
	st.t.Helper()
	st.says(p, "a second signal ends the process at once")
	if p.ended() {
		st.t.Fatal("it did not wait for a second signal")
	}
	p.Signal(s)
	p.goes()
	last := strings.TrimSpace(p.since(`msg="the process ends at once"`))
	if p.Code() != 130 || !strings.HasPrefix(last, "signal=") || strings.Contains(last, "\n") {
		st.t.Errorf("after the second signal it ended with %d and said\n%s", p.Code(), last)
	}
}

// says waits until a process has written a text.
func (st *stack) says(p *process, what string) {
	st.t.Helper()
	st.until("it says "+what, func() bool { return strings.Contains(p.output(), what) })
}

// since is the output of a process after a line.
func (p *process) since(line string) string {
	_, after, _ := strings.Cut(p.output(), line)
	return after
}

var untilWhen = regexp.MustCompile(`time=(\S+) .*msg="box is stopping and gives its runs back".* runs=1 at_most=1m0s until=(\S+)`)

var handsIn = regexp.MustCompile(`msg="box waits for its runs".* to_save=0 to_hand_in=1 connected=false`)

// Boxes that are stopped with their server log how long they wait for it, and wait no
// longer; a second signal ends them at once. They deliver the rest of their data when
// both are back.
func TestBoxesStoppedWithTheirServer(t *testing.T) {
	st := newStack(t, append(withModel(t, `scenarios:
  - name: ask
    match: Ask a person
    steps:
      - text: I ask.
        shell: |
          echo '{"kind":"decision","question":"Which colour?"}' >"$YARDMASTER_OUTBOX/blocker-1.json"
      - text: I wait.
`), "--lease", "5m")...)
	st.call(http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	st.script("work", `[ ! -e half ] || { echo resumed; rm half; `+deliver+`; exit; }; echo half >half; `+work)
	// One box has nothing to save, another has work that it cannot push.
	parked := st.join("parked")
	asks := st.file("default", "Ask a person")
	st.until("the run is parked", func() bool { tries := st.tries(asks); return len(tries) == 1 && tries[0].State == "parked" })
	busy := st.join("busy")
	works := st.file("work", "Be worked on")
	r := st.live(works, 1)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 10 })

	st.server.stop() // first, because a quick box would otherwise deliver everything
	parked.Signal(syscall.SIGTERM)
	busy.Signal(syscall.SIGTERM)

	st.says(busy.process, "push failed, trying again")
	st.hastens(busy.process, syscall.SIGINT)

	st.until("the box says what it waits for", func() bool { return handsIn.MatchString(parked.output()) })
	for _, b := range []*machine{parked, busy} {
		m := untilWhen.FindStringSubmatch(b.output())
		if m == nil {
			t.Fatalf("%s does not say how long it waits:\n%s", b.name, b.output())
		}
		said, err := time.Parse(time.RFC3339, m[1])
		when, err2 := time.Parse(time.RFC3339, m[2])
		if err := errors.Join(err, err2); err != nil || when.After(said.Add(time.Minute)) {
			t.Errorf("at %s, %s says that it stops at %s (%v)", said, b.name, when, err)
		}
	}
	parked.goes() // without the server
	if said := parked.since(`msg="run finished"`); said == "" || strings.Contains(said, "lease") {
		t.Errorf("of a run that has ended, the box says\n%s", said)
	}

	st.serve()
	parked.run()
	busy.run()
	for id, want := range map[string]string{asks: "lost(box_drained)", works: "lost(box_lost)"} {
		first := st.ends(id, 1)
		if got := first.Outcome + "(" + first.FailureKind + ")"; got != want {
			t.Errorf("the first try of %s ended as %s, want %s", id, got, want)
		}
	}
	st.merges(works)
	if tries := st.tries(works); tries[1].ResumeSHA == "" || st.lines(tries[1])[0] != "resumed" {
		t.Errorf("the work was not saved: %+v", tries[1])
	}
	st.call(http.MethodPost, "/v1/tasks/"+asks+"/cancel", nil, nil)
	st.until("the task is cancelled", func() bool { return st.task(asks).Ended() })
	st.verify()
}

// A server that is being stopped ends at once on a second signal.
func TestServerStoppedTwice(t *testing.T) {
	st := newStack(t, "--stop-delay", "10m")
	id := st.file("default", "Be there afterwards")
	st.server.Signal(syscall.SIGTERM)
	st.hastens(st.server, syscall.SIGTERM)
	st.serve()
	if got := st.task(id).Status; got != "pending" && got != "held" {
		t.Errorf("the task is %s", got)
	}
}
