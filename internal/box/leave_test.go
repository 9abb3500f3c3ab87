package box_test

import (
	"testing"
	"time"

	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// TestBoxLeavesItsClaim holds that a stopped box does not wait for its claim: it
// says that it has left and which runs it keeps, which are none. If the goodbye is
// lost, the claim of its next start brings the run.
func TestBoxLeavesItsClaim(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	granted := make(chan struct{})
	p.change(func() { p.granted = granted })
	cfg := p.config()
	held(&cfg) // the goodbye has as long as it takes
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

// A run that is given to a claim whose answer comes when its lease is over is claimed
// again, and not lost.
func TestRunThatComesTooLateIsClaimedAgain(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.stale = 2
	p.start(p.config())
	run := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	if s, f := p.finish(run); f.State != protocol.Succeeded {
		t.Errorf("it ended as %+v, events %s", f, s.kinds())
	}
	p.change(func() {
		if len(p.claims) != 1 {
			t.Errorf("it was claimed by %d claims", len(p.claims))
		}
	})
}

// A claim whose run comes too late three times in a row is given up: the box goes on with
// another, and the run with its lease.
func TestRunThatAlwaysComesTooLateIsGivenUp(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.stale = 3
	p.start(p.config())
	late := p.task(func(s *protocol.Start) { s.Prompt = "say late" })
	run := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	if s, f := p.finish(run); f.State != protocol.Succeeded {
		t.Errorf("the next run ended as %+v, events %s", f, s.kinds())
	}
	p.change(func() {
		if len(p.claims) != 2 {
			t.Errorf("there were %d claims", len(p.claims))
		}
		if got := p.run(late).kinds(); got != "" {
			t.Errorf("the late run has begun: %s", got)
		}
	})
}

// TestGoodbyeComesLast holds that the runs of a box are given back before its
// goodbye, or named in it.
func TestGoodbyeComesLast(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	clock := held(&cfg) // the goodbye has as long as it takes
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

	// A run that could not be given back in time is left to the next start.
	p.change(func() { p.full = 1 << 20 })
	stop = p.start(cfg)
	run = p.task(func(s *protocol.Start) { s.Prompt = "say ready\nhang" })
	p.until("the box holds the run", func() bool { return p.presence.State == "ready" && len(p.presence.Runs) == 1 })
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	p.until("the box cannot hand the run in", func() bool { return p.offered[run] == protocol.EventFinished })
	clock.over(cfg.Timing.Leave)
	if err := patience.Receive(t, "the end of the box", stopped); err != nil {
		t.Fatal(err)
	}
	if last := p.presence; last.State != protocol.PresenceLeft || len(last.Runs) != 1 || last.Runs[0].Run != run {
		t.Errorf("the goodbye: %+v", last)
	}
	p.change(func() { p.full = 0 })
	p.start(cfg)
	if _, f := p.finish(run); f.State != protocol.Lost || f.Kind != "box_drained" {
		t.Errorf("after the next start: %+v", f)
	}
}

// TestBoxLeavesAPlaneThatDoesNotAnswer holds that a stopped box does not wait for
// missing answers, not even to the beat before its goodbye.
func TestBoxLeavesAPlaneThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.change(func() { p.deaf = true })
	cfg := p.config()
	cfg.Timing.Beat = time.Hour
	stop := p.start(cfg)
	p.until("a beat is under way", func() bool { return p.beaten > 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestBoxIsThereAfterAnothersGoodbye holds that a running box says hello again
// after another process of it has said goodbye for both.
func TestBoxIsThereAfterAnothersGoodbye(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	p.until("the box claims", func() bool { return p.waiting == 1 })
	var before int
	p.change(func() { before, p.left = len(p.hellos), true })
	p.until("it says hello again", func() bool { return len(p.hellos) > before && !p.left })
	run := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	if _, f := p.finish(run); f.State != protocol.Succeeded {
		t.Errorf("after that: %+v", f)
	}
}
