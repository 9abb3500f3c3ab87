package e2e

import "testing"

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
