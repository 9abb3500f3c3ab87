package box_test

import (
	"testing"
	"time"

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
	granted := make(chan struct{})
	p.change(func() { p.granted = granted })
	cfg := p.config()
	cfg.Timing.ClaimWait = 8 * time.Second
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt, s.LeaseMS = "say done", 8000 })
	p.until("the answer is too old for the lease", func() bool {
		return len(p.claims) == 1 && time.Since(p.run(run).asked) > 4500*time.Millisecond
	})
	close(granted)
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
	granted := make(chan struct{})
	p.change(func() { p.granted = granted })
	cfg := p.config()
	cfg.Slots = 1
	p.start(cfg)
	late := p.task(func(s *protocol.Start) { s.Prompt, s.LeaseMS = "say late", 1200 })
	for range 3 {
		p.until("the claim is held", func() bool { return p.granted == nil })
		held := time.Now()
		p.until("its answer is too old", func() bool { return time.Since(held) > 700*time.Millisecond })
		next := make(chan struct{})
		p.change(func() { p.granted = next })
		close(granted)
		granted = next
	}
	p.change(func() { p.granted = nil })
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

// TestNoLeaseForWhatIsHandedIn holds that a leaving box renews no leases of runs
// that have ended.
func TestNoLeaseForWhatIsHandedIn(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Renew, cfg.Timing.Leave = 500*time.Millisecond, 12*time.Second
	stop := p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "say ready\nhang" })
	p.saying(run, "ready")
	p.change(func() { p.full = 1 << 20 }) // nothing can be handed in
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if f, ended := p.run(run).finished(); ended {
		t.Fatalf("the run was handed in: %+v", f)
	}
	if quiet := time.Since(p.run(run).asked); quiet < 2*cfg.Timing.Renew {
		t.Errorf("the last lease was asked for %s before the end", quiet)
	}
	p.change(func() { p.full = 0 })
	p.start(cfg)
	if _, f := p.finish(run); f.State != protocol.Lost || f.Kind != "box_drained" {
		t.Errorf("after the next start: %+v", f)
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
