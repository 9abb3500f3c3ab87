package box_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/bus"
	"yardmaster/internal/protocol"
)

func newAuthority(t *testing.T) *bus.Authority {
	t.Helper()
	a, err := bus.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

// again stops the bus and starts it with another configuration at its address.
func (p *plane) again(change func(*bus.Config)) {
	p.t.Helper()
	p.moving.Lock()
	defer p.moving.Unlock()
	p.shutdown()
	change(&p.cfg)
	p.boot()
}

// journal keeps what a box logs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
	news func()
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.news()
	return j.text.Write(b)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), text)
}

// journal makes the box log into a journal, of which every line is news of the plane.
func (p *plane) journal(cfg *box.Config) *journal {
	j := &journal{news: func() { go p.change(func() {}) }}
	cfg.Logger = slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return j
}

// knows has the box carry out a run, and tells what it knows of its bus then.
func (p *plane) knows(cfg box.Config) box.Identity {
	p.t.Helper()
	run := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	if _, f := p.finish(run); f.State != protocol.Succeeded {
		p.t.Errorf("%+v", f)
	}
	id, err := box.LoadIdentity(cfg.DataDir)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// A box that enrolled when the bus was in the clear moves over by itself when the bus
// speaks TLS, and back.
func TestBoxMovesToTLS(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Seek = 50 * time.Millisecond
	p.start(cfg)
	if id := p.knows(cfg); id.NATSCA != "" || !strings.HasPrefix(id.NATSURL, "nats://") {
		t.Errorf("in the clear the box knows %q at %s", id.NATSCA, id.NATSURL)
	}
	p.again(func(c *bus.Config) { c.Authority = newAuthority(t) })
	id := p.knows(cfg)
	if id.NATSCA == "" || id.NATSCA != p.bus.CA() || id.NATSURL != p.bus.URL() || !strings.HasPrefix(id.NATSURL, "tls://") {
		t.Errorf("over TLS the box knows %q at %s", id.NATSCA, id.NATSURL)
	}
	p.again(func(c *bus.Config) { c.Authority = nil })
	if id := p.knows(cfg); id.NATSCA != "" || id.NATSURL != p.bus.URL() {
		t.Errorf("in the clear again the box knows %q at %s", id.NATSCA, id.NATSURL)
	}
}

// A box that enrols knows the authority of the bus, refuses one of another authority,
// says so, and asks over HTTPS at once.
func TestAnotherAuthorityIsLearned(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.again(func(c *bus.Config) { c.Authority = newAuthority(t) })
	cfg := p.config()
	log := p.journal(&cfg)
	cfg.Timing.Seek = time.Hour // it asks because of what it has seen
	p.start(cfg)
	if id := p.knows(cfg); id.NATSCA != p.bus.CA() {
		t.Errorf("the box knows %q", id.NATSCA)
	}
	before := p.bus.CA()
	p.again(func(c *bus.Config) { c.Authority = newAuthority(t) })
	id := p.knows(cfg)
	if id.NATSCA != p.bus.CA() || id.NATSCA == before {
		t.Errorf("after a new authority the box knows %q, which was %q", id.NATSCA, before)
	}
	if !log.has("the box refuses the bus") || !log.has("SHA-256 "+p.bus.CA()+", not "+before) {
		t.Error("the log does not say whom the box refused")
	}
}

// Whoever is at the address of the bus with another authority gets no box, however
// often the box asks its server, which goes on to name the true one.
func TestNobodyElseGetsTheBox(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	genuine := newAuthority(t)
	p.again(func(c *bus.Config) { c.Authority = genuine })
	cfg := p.config()
	log := p.journal(&cfg)
	cfg.Timing.Seek = 20 * time.Millisecond
	ca := p.bus.CA()
	p.mu.Lock()
	p.ca = &ca
	p.mu.Unlock()
	p.again(func(c *bus.Config) { c.Authority = newAuthority(t) })
	p.start(cfg)
	p.until("the box has asked thrice", func() bool { return p.reissues > 2 })
	p.until("and says whom it refuses", func() bool { return log.has("is not the bus that this box knows, and was sent nothing") })
	p.mu.Lock()
	if len(p.hellos) > 0 || p.beaten > 0 {
		t.Errorf("it heard %d hellos and %d beats", len(p.hellos), p.beaten)
	}
	p.mu.Unlock()
	p.again(func(c *bus.Config) { c.Authority = genuine })
	p.knows(cfg)
}

// What a box was told in the clear about a bus elsewhere it asks about first, so that
// a box from before that there was TLS says nothing in the clear when it starts.
func TestBoxAsksBeforeItSpeaksInTheClear(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	id, err := box.Enroll(context.Background(), p.http.URL, enrollToken, box.Info{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	told, here := box.TrustNow(t, id)
	if here.TLS || !here.Here {
		t.Errorf("at start it trusts %+v", here)
	}
	if told.TLS || told.Here {
		t.Errorf("once its server has said so it trusts %+v", told)
	}
	p.again(func(c *bus.Config) { c.Authority = newAuthority(t) })
	if told, _ = box.TrustNow(t, id); !told.TLS || told.CA != p.bus.CA() || told.Here {
		t.Errorf("once its server has said that there is TLS it trusts %+v", told)
	}
}
