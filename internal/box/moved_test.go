package box_test

import (
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/protocol"
)

// TestBusThatMovedIsFound holds that a box finds its bus if the address has changed
// since the box enrolled.
func TestBusThatMovedIsFound(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Seek = 50 * time.Millisecond
	id, err := box.LoadIdentity(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	now := id.NATSURL
	id.NATSURL = "nats://127.0.0.1:1"
	if err := id.Save(cfg.DataDir); err != nil {
		t.Fatal(err)
	}
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	if _, f := p.finish(run); f.State != protocol.Succeeded {
		t.Errorf("%+v", f)
	}
	if id, err = box.LoadIdentity(cfg.DataDir); err != nil || id.NATSURL != now {
		t.Errorf("the box remembers %s, want %s (%v)", id.NATSURL, now, err)
	}
}
