package agent_test

import (
	"testing"

	"yardmaster/internal/protocol"
)

// A box that is stopped does not wait for what its claim may bring: it says that
// it has left and what it keeps, which is nothing. Where nobody heard that, the
// claim of its next start brings the run.
func TestBoxLeavesItsClaim(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	granted := make(chan struct{})
	p.change(func() { p.granted = granted })
	cfg := p.config()
	stop := p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	p.until("the run is given to the claim", func() bool { return len(p.claims) == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	p.until("the box has said goodbye", func() bool { return p.presence.State == protocol.PresenceLeft })
	if last := p.presence; len(last.Runs) > 0 || last.Free != 0 {
		t.Errorf("the goodbye: %+v", last)
	}
	close(granted)
	p.start(cfg)
	if _, f := p.finish(run); f.State != protocol.Succeeded {
		t.Errorf("after the next start: %+v", f)
	}
}

// What a box holds is given back before it says goodbye, or named in it.
func TestGoodbyeComesLast(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	stop := p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "say ready\nhang" })
	p.saying(run, "ready")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if f, ended := p.run(run).finished(); !ended || f.State != protocol.Lost || f.Kind != "box_drained" {
		t.Errorf("the run: %+v", f)
	}
	if last := p.presence; last.State != protocol.PresenceLeft || len(last.Runs) > 0 {
		t.Errorf("the goodbye: %+v", last)
	}

	// A run that could not be given back in time is the next start's.
	p.change(func() { p.full = 1 << 20 })
	cfg.Timing.Leave = 1
	stop = p.start(cfg)
	run = p.task(func(s *protocol.Start) { s.Prompt = "say ready\nhang" })
	p.until("the box holds the run", func() bool { return p.presence.State == "ready" && len(p.presence.Runs) == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if last := p.presence; last.State != protocol.PresenceLeft || len(last.Runs) != 1 || last.Runs[0].Run != run {
		t.Errorf("the goodbye: %+v", last)
	}
}
