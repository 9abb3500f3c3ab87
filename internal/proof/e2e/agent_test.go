package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/proof/executable"
)

func TestAgentThatExitsZeroAfterFailing(t *testing.T) {
	st := newStack(t)
	// Like some real agents, it looks installed, changes a file, reports a failure,
	// and exits as if it had succeeded.
	bin := st.path("bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	const agent = "#!/bin/sh\n[ \"$1\" != --version ] || { echo 1.0.0; exit 0; }\necho half >half\necho 'the disk of my mind is full' >&2\nexit 0\n"
	if err := executable.Write(filepath.Join(bin, "opencode"), []byte(agent), 0o755); err != nil {
		t.Fatal(err)
	}
	st.call(http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	st.template("work", map[string]any{"agent": "opencode"})
	st.env = []string{"YARDMASTER_AGENT_PATH=" + bin}
	st.join("box")
	id := st.file("work", "Be let down by an agent")
	r := st.ends(id, 1)
	if r.Outcome != "failed" || !strings.HasPrefix(r.FailureKind, "agent_") {
		t.Errorf("the first try ended as %+v", r)
	}
	if !strings.Contains(r.EndedReason, "the disk of my mind is full") {
		t.Errorf("the reason does not quote the agent: %q", r.EndedReason)
	}
	if task := st.task(id); task.Status != "pending" || task.PRID != nil {
		t.Errorf("the task after it: %+v", task)
	}

	// With another agent, the next try finds the file that was left.
	st.script("work", `rm half || exit; `+deliver)
	st.merges(id)
	if got := st.outcomes(id); got != "failed("+r.FailureKind+") succeeded" {
		t.Errorf("the tries: %s", got)
	}
	st.verify()
}

func TestAgentThatNeverEnds(t *testing.T) {
	st := newStack(t)
	// The agent ignores signals, and has a child that left its session.
	const stubborn = `[ ! -e half ] || { rm -f half ticks; ` + deliver + `; exit; }
		trap '' TERM INT HUP; echo half >half
		setsid sh -c 'trap "" TERM INT HUP; while :; do date +%s%N >>ticks; sleep 0.05; done' &
		while :; do sleep 1; done`
	st.template("work", map[string]any{"agent": "command", "command": []string{"/bin/sh", "-c", stubborn}, "timeout": 20})
	b := st.join("box")
	id := st.file("work", "Be worked on for ever")
	ticks := b.ticks(st.live(id, 1))
	r := st.ends(id, 1)
	// The next try is one that ends, however slow this machine is.
	st.script("work", stubborn)
	if r.Outcome != "failed" || r.FailureKind != "run_timeout" {
		t.Errorf("the first try ended as %+v", r)
	}
	times := st.times(ticks)
	if last := times[len(times)-1]; last.After(*r.EndedAt) {
		t.Errorf("a child of the agent ticked at %s, its run ended at %s", last, r.EndedAt)
	}
	st.merges(id)
	if got := st.outcomes(id); got != "failed(run_timeout) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	if r := st.tries(id)[1]; r.ResumeSHA == "" {
		t.Error("the second try did not go on with the saved work")
	}
	if n := len(st.times(ticks)); n > len(times) {
		t.Errorf("a child of the agent ticked %d times after its run had ended", n-len(times))
	}
	st.verify()
}
