package github

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"yardmaster/internal/id"
)

// HookFaults are how often a delivery goes wrong, from 0 to 1 each. Seed chooses which.
type HookFaults struct {
	Seed     uint64
	Lost     float64 // it is listed as failed, and never arrives
	Vanished float64 // it is not even listed
	Doubled  float64 // it arrives twice, with the same GUID
	Shuffled float64 // it arrives after up to four later ones
	Forged   float64 // a forgery of it, with a wrong signature, arrives as well
	Foreign  float64 // the same, signed and sent for another App, arrives as well
}

// sent is an attempt to deliver.
type sent struct {
	id         int64
	guid       string
	app        *App
	event      string
	action     string
	inst, repo int64
	at         time.Time
	took       time.Duration
	again      bool
	status     string
	code       int
	header     http.Header
	payload    []byte
	answer     string
	answered   http.Header
}

// postOffice keeps the deliveries that are to be sent.
type postOffice struct {
	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*letter
	held   []*letter
	busy   int // deliveries that are being sent
	closed bool
	faults HookFaults
	chance *rand.Rand
}

// letter is a delivery on its way.
type letter struct {
	*sent
	lost    bool
	unsaid  bool // a forgery: GitHub does not list it
	wait    int  // how many later ones are sent before it
	address string
}

func (p *postOffice) init() { p.wake = sync.NewCond(&p.mu) }

func (p *postOffice) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wake.Broadcast()
}

// Spoil makes deliveries go wrong from now on. The zero value ends it.
func (s *Server) Spoil(f HookFaults) {
	s.post.mu.Lock()
	defer s.post.mu.Unlock()
	s.post.faults = f
	s.post.chance = rand.New(rand.NewPCG(f.Seed, 1))
}

// Settle sends what was held back, and waits until every delivery was answered or has
// failed.
func (s *Server) Settle(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.post.mu.Lock()
		defer s.post.mu.Unlock()
		s.post.wake.Broadcast()
	})
	defer stop()
	p := &s.post
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue, p.held = append(p.queue, p.held...), nil
	p.wake.Broadcast()
	for (len(p.queue) > 0 || p.busy > 0) && !p.closed {
		if ctx.Err() != nil {
			return fmt.Errorf("%d deliveries are left: %w", len(p.queue), ctx.Err())
		}
		p.wake.Wait()
	}
	return nil
}

// add takes a delivery. Server.mu is held.
func (p *postOffice) add(d *sent, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.faults
	chance := func(of float64) bool { return of > 0 && p.chance.Float64() < of }
	one := &letter{sent: d, address: address}
	if chance(f.Vanished) {
		d.app.deliveries = d.app.deliveries[:len(d.app.deliveries)-1]
		return
	}
	one.lost = chance(f.Lost)
	out := []*letter{one}
	if chance(f.Doubled) {
		twin := *d
		out = append(out, &letter{sent: &twin, address: address, unsaid: true})
	}
	for _, forge := range []struct {
		of     float64
		target bool
	}{{f.Forged, false}, {f.Foreign, true}} {
		if !chance(forge.of) {
			continue
		}
		false1 := *d
		false1.guid, false1.header = id.Random(), d.header.Clone()
		false1.header.Set("X-GitHub-Delivery", false1.guid)
		false1.header.Set("X-Hub-Signature-256", sign(sha256.New, "sha256=", "another secret", d.payload))
		if forge.target {
			false1.header.Set("X-GitHub-Hook-Installation-Target-ID", strconv.FormatInt(d.app.ID+1, 10))
		}
		out = append(out, &letter{sent: &false1, address: address, unsaid: true})
	}
	for _, l := range out {
		if chance(f.Shuffled) {
			l.wait = 1 + p.chance.IntN(4)
			p.held = append(p.held, l)
			continue
		}
		p.queue = append(p.queue, l)
	}
	var still []*letter
	for _, l := range p.held {
		if l.wait--; l.wait < 0 {
			p.queue = append(p.queue, l)
		} else {
			still = append(still, l)
		}
	}
	p.held = still
	p.wake.Broadcast()
}

// deliver sends one delivery after the other until the peer is closed.
func (s *Server) deliver() {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p := &s.post
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.closed {
			p.wake.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		l := p.queue[0]
		p.queue = p.queue[1:]
		p.busy++
		p.mu.Unlock()
		s.send(client, l)
		p.mu.Lock()
		p.busy--
		p.wake.Broadcast()
		p.mu.Unlock()
	}
}

// send makes one attempt and notes what came of it.
func (s *Server) send(client *http.Client, l *letter) {
	begun := s.Now()
	code, status, text, header := 0, "timed out", "", http.Header(nil)
	if !l.lost {
		code, status, text, header = s.deliverOnce(client, l)
	}
	if l.unsaid {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.code, l.status, l.answer, l.answered = code, status, text, header
	l.at, l.took = begun, s.now().Sub(begun)
}

func (s *Server) deliverOnce(client *http.Client, l *letter) (int, string, string, http.Header) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.HookTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.address, bytes.NewReader(l.payload))
	if err != nil {
		return 0, "invalid address", "", nil
	}
	r.Header = l.header.Clone()
	answer, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return 0, "timed out", "", nil
		}
		return 0, "failed to connect to host", "", nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	status := "OK"
	if answer.StatusCode >= 400 || answer.StatusCode < 200 {
		status = "Invalid HTTP Response: " + strconv.Itoa(answer.StatusCode)
	}
	return answer.StatusCode, status, string(text), answer.Header
}

func sign(h func() hash.Hash, prefix, secret string, text []byte) string {
	m := hmac.New(h, []byte(secret))
	m.Write(text)
	return prefix + hex.EncodeToString(m.Sum(nil))
}

// notify makes a delivery to an App, with the members of a payload.
func (s *Server) notify(app *App, i *Installation, repo *Repo, event, action string, payload obj) {
	if !app.active || app.hookURL == "" {
		return
	}
	if action != "" {
		payload["action"] = action
	}
	text, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	if len(text) > s.o.MaxPayload {
		return
	}
	d := &sent{
		id: s.next(), guid: id.Random(), app: app, event: event, action: action, at: s.now(), payload: text, status: "pending",
	}
	if i != nil {
		d.inst = i.ID
	}
	if repo != nil {
		d.repo = repo.ID
	}
	d.header = http.Header{
		"Content-Type":                           {"application/json"},
		"Accept":                                 {"*/*"},
		"User-Agent":                             {"GitHub-Hookshot/0000000"},
		"X-Github-Event":                         {event},
		"X-Github-Delivery":                      {d.guid},
		"X-Github-Hook-Id":                       {strconv.FormatInt(app.ID+1_000_000, 10)},
		"X-Github-Hook-Installation-Target-Id":   {strconv.FormatInt(app.ID, 10)},
		"X-Github-Hook-Installation-Target-Type": {"integration"},
	}
	if app.secret != "" {
		d.header.Set("X-Hub-Signature", sign(sha1.New, "sha1=", app.secret, text))
		d.header.Set("X-Hub-Signature-256", sign(sha256.New, "sha256=", app.secret, text))
	}
	if s.o.Enterprise != "" {
		if u, err := url.Parse(s.Web); err == nil {
			d.header.Set("X-GitHub-Enterprise-Host", u.Host)
		}
		d.header.Set("X-GitHub-Enterprise-Version", s.o.Enterprise)
	}
	if s.o.WatchDelivery != nil {
		s.o.WatchDelivery(event, action, d.header, text)
	}
	app.deliveries = append(app.deliveries, d)
	s.post.add(d, app.hookURL)
}

// Signature is the value of X-Hub-Signature-256 for a body.
func Signature(secret string, body []byte) string { return sign(sha256.New, "sha256=", secret, body) }
