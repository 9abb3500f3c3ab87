package box_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reflect"
	"yardmaster/internal/box"
	"yardmaster/internal/bus"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

const boxID = "box-1"

// plane is a control plane: a real bus, a real git host and the answers a
// control plane gives, with faults on demand.
type plane struct {
	t    *testing.T
	cfg  bus.Config
	bus  *bus.Bus
	seat string // the NATS account of the box
	halt context.CancelFunc
	// moving is held while the bus is another one: nobody is told of the one before.
	moving sync.RWMutex
	http   *httptest.Server // enrollment and reissue, git, the model gateway
	data   string           // of the box that was enrolled last
	repo   string           // the bare repository that the git host serves
	lease  time.Duration

	mu       sync.Mutex
	ca       *string       // not nil: the fingerprint that boxes are told over HTTP, whatever the bus shows
	news     chan struct{} // closed and replaced when anything below changes
	queue    []protocol.Start
	claims   map[string]protocol.Start // by claim id
	runs     map[string]*seen
	commands []protocol.Command
	full     int               // appends that are refused for now
	offered  map[string]string // by run, the kind of the last event that was refused
	seatGone bool              // nobody knows the box's account any more
	hellos   []protocol.Hello
	presence *protocol.Presence
	beaten   int           // beats of it
	waiting  int           // claims that are not answered yet
	granted  chan struct{} // not nil: the next claim that is given a run is answered once it is closed
	stale    int           // answers with a run whose lease is over when they come
	left     bool          // as if the box had said goodbye; until its next hello
	draining bool
	silent   bool // renewals and accepts are not answered
	deaf     bool // beats are not answered
	refuse   *fault.Error
	reissues int
	exposure []string      // firewalls that boxes reported
	renewals int           // of credentials
	life     time.Duration // of NATS credentials
	issued   time.Duration // life of the one that was issued last
	secrets  []protocol.Secret
	push     string // the push token that is good now; empty: gitToken
	lost     int    // answers with a push token that do not arrive
	down     string // what is in the addresses of git that are answered with 503
	refusals int    // answers with 503
}

// seen is a run as its committed events tell it.
type seen struct {
	events []protocol.Event
	asked  time.Time // newest renewal that was granted
	fenced bool
	closed bool // takes no more events
	again  int  // envelopes with events that were committed before
}

func (s *seen) kinds() string {
	var out []string
	for _, e := range s.events {
		if n := len(out); n == 0 || out[n-1] != e.Kind {
			out = append(out, e.Kind)
		}
	}
	return strings.Join(out, " ")
}

func (s *seen) data(t *testing.T, kind string, v any) {
	t.Helper()
	for _, e := range s.events {
		if e.Kind == kind {
			if err := json.Unmarshal(e.Data, v); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no event %s among %s", kind, s.kinds())
}

func (s *seen) text() string {
	var b strings.Builder
	for _, e := range s.events {
		var u struct{ Content struct{ Text string } }
		if e.Kind == protocol.EventUpdate && json.Unmarshal(e.Data, &u) == nil {
			b.WriteString(u.Content.Text)
		}
	}
	return b.String()
}

func (s *seen) finished() (f protocol.Finished, ok bool) {
	if n := len(s.events); n > 0 && s.events[n-1].Kind == protocol.EventFinished {
		return f, json.Unmarshal(s.events[n-1].Data, &f) == nil
	}
	return f, false
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{
		t: t, lease: protocol.LeaseTTL, life: 24 * time.Hour, news: make(chan struct{}),
		claims: map[string]protocol.Start{}, runs: map[string]*seen{}, offered: map[string]string{}, repo: newRepo(t),
	}
	keys, err := bus.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	p.cfg = bus.Config{Keys: keys, Owner: func(_ context.Context, account string) (string, bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return boxID, account == p.seat && !p.seatGone, nil
	}}
	p.boot()
	if p.seat, err = p.bus.NewAccount(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.shutdown)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/runners/enroll", p.enroll)
	mux.HandleFunc("POST /v1/runners/creds/reissue", p.reissue)
	mux.HandleFunc("POST /v1/runners/hardening", p.hardening)
	mux.HandleFunc("POST /v1/chat/completions", p.model)
	mux.HandleFunc("/git/", p.git)
	p.http = httptest.NewServer(mux)
	t.Cleanup(p.http.Close)
	return p
}

// beats returns the number of beats so far.
func (p *plane) beats() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beaten
}

func handler[In, Out any](fn func(context.Context, In) (Out, error)) func(context.Context, string, []byte) (any, error) {
	return func(ctx context.Context, box string, data []byte) (any, error) {
		var in In
		if err := json.Unmarshal(data, &in); err != nil || box != boxID {
			return nil, fmt.Errorf("box %s: %w", box, err)
		}
		return fn(ctx, in)
	}
}

// sealed seals v to the box's process that said hello last. The lock is held.
func (p *plane) sealed(purpose string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return seal.SealTo(p.hellos[len(p.hellos)-1].Key, purpose, text)
}

// vault answers with the secrets that runs may use.
func (p *plane) vault(_ context.Context, ask protocol.SecretsAsk) (out protocol.Secrets, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out.Sealed, err = p.sealed(protocol.SecretsPurpose(ask.Run), p.secrets)
	return out, err
}

func (p *plane) beat(ctx context.Context, in protocol.Presence) (out protocol.BeatReply, err error) {
	p.mu.Lock()
	deaf := p.deaf
	p.mu.Unlock()
	if deaf {
		p.change(func() { p.beaten++ })
		<-ctx.Done()
		return out, ctx.Err()
	}
	p.change(func() { p.presence, p.beaten, out.Commands = &in, p.beaten+1, len(p.commands) > 0 })
	return out, nil
}

func (p *plane) next(context.Context, struct{}) (out protocol.Commands, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out.Commands = slices.Clone(p.commands)
	return out, nil
}

func (p *plane) done(_ context.Context, in protocol.Done) (struct{}, error) {
	p.change(func() {
		p.commands = slices.DeleteFunc(p.commands, func(c protocol.Command) bool { return slices.Contains(in.IDs, c.ID) })
	})
	return struct{}{}, nil
}

func (p *plane) change(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
	close(p.news)
	p.news = make(chan struct{})
}

// until waits until ok holds; it is called with the lock held.
func (p *plane) until(what string, ok func() bool) {
	p.t.Helper()
	over := patience.Over(p.t)
	for {
		p.mu.Lock()
		done, news := ok(), p.news
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-over:
			p.mu.Lock()
			defer p.mu.Unlock()
			for run, s := range p.runs {
				p.t.Logf("run %s: %s, text %q", run, s.kinds(), s.text())
			}
			p.t.Fatalf("not so in the end: %s", what)
		}
	}
}

func (p *plane) run(run string) *seen {
	if p.runs[run] == nil {
		p.runs[run] = &seen{}
	}
	return p.runs[run]
}

// finish waits for the end of a run.
func (p *plane) finish(run string) (*seen, protocol.Finished) {
	p.t.Helper()
	var f protocol.Finished
	var s seen
	p.until("the end of "+run, func() (ok bool) {
		f, ok = p.run(run).finished()
		s = *p.run(run)
		return ok
	})
	return &s, f
}

// saying waits until the agent of a run has said something.
func (p *plane) saying(run, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%s says %q", run, text), func() bool { return strings.Contains(p.run(run).text(), text) })
}

func (p *plane) hello(_ context.Context, in protocol.Hello) (out protocol.HelloReply, err error) {
	p.change(func() {
		p.hellos = append(p.hellos, in)
		p.left = false
		out.Draining = p.draining
		for _, r := range in.Runs {
			v := protocol.RunVerdict{Run: r.Run, Attempt: r.Attempt, Do: protocol.DoKill}
			s := p.run(r.Run)
			if _, ended := s.finished(); !ended && !s.fenced {
				v.Do, v.FromSeq, v.LeaseMS = protocol.DoContinue, int64(len(s.events))+1, p.lease.Milliseconds()
			}
			out.Runs = append(out.Runs, v)
		}
	})
	out.ServerMS = time.Now().UnixMilli()
	return out, nil
}

func (p *plane) claim(ctx context.Context, in protocol.Claim) (out protocol.ClaimReply, err error) {
	limit := time.After(time.Duration(in.WaitMS) * time.Millisecond)
	p.change(func() { p.waiting++ })
	defer p.change(func() { p.waiting-- })
	for {
		p.mu.Lock()
		if p.left {
			p.mu.Unlock()
			return protocol.ClaimReply{Reasons: []string{"box_left"}}, nil
		}
		start, again := p.claims[in.ID]
		if !again && len(p.queue) > 0 && !p.draining && in.Free > 0 {
			start, again, p.queue = p.queue[0], true, p.queue[1:]
			p.claims[in.ID] = start
			p.run(start.Run).asked = time.Now()
		}
		news, granted := p.news, p.granted
		if again {
			p.granted = nil
		}
		if again && p.stale > 0 {
			p.stale, start.LeaseMS = p.stale-1, 0
		}
		p.mu.Unlock()
		if again && granted != nil {
			select {
			case <-granted:
			case <-ctx.Done():
			}
		}
		if again {
			out.Run = &start
			p.mu.Lock()
			out.Sealed, err = p.sealed(protocol.TokensPurpose(start.Run), protocol.Tokens{Git: start.GitToken, Model: start.ModelToken})
			p.mu.Unlock()
			start.GitToken, start.ModelToken = "", ""
			return out, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return out, ctx.Err()
		case <-limit:
			return protocol.ClaimReply{Reasons: []string{"no_task"}}, nil
		}
	}
}

func (p *plane) grant(ctx context.Context, run string) (out protocol.Renewal, err error) {
	p.mu.Lock()
	silent, s := p.silent, p.run(run)
	if _, ended := s.finished(); !silent && !s.fenced && !ended {
		s.asked = time.Now()
		out = protocol.Renewal{OK: true, LeaseMS: p.lease.Milliseconds(), CommittedSeq: int64(len(s.events))}
	}
	p.mu.Unlock()
	if silent {
		<-ctx.Done()
		return out, ctx.Err()
	}
	return out, nil
}

func (p *plane) accept(ctx context.Context, in protocol.Accept) (protocol.Renewal, error) {
	return p.grant(ctx, in.Run)
}

func (p *plane) renew(ctx context.Context, in protocol.Renew) (protocol.Renewal, error) {
	return p.grant(ctx, in.Run)
}

func (p *plane) gitToken(_ context.Context, ask protocol.GitTokenAsk) (out protocol.GitToken, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out.ExpiresMS = 3600_000
	if p.lost > 0 {
		p.lost, p.push = p.lost-1, "replaced"
		return out, errors.New("lost")
	}
	p.push = gitToken
	out.Sealed, err = p.sealed(protocol.TokensPurpose(ask.Run), protocol.Tokens{Git: gitToken})
	return out, err
}

// append commits events: exactly once and without gaps, or the test fails.
func (p *plane) append(_ context.Context, e protocol.Envelope) (out protocol.Appended, err error) {
	p.mu.Lock()
	full := p.full > 0
	p.mu.Unlock()
	if full {
		p.change(func() { p.full, p.offered[e.Run] = p.full-1, e.Events[len(e.Events)-1].Kind })
		return out, fault.New(fault.RateLimited, "", "The box asks too much in too short a time.")
	}
	p.change(func() {
		s := p.run(e.Run)
		defer func() { out.Seq, out.Closed = int64(len(s.events)), s.closed }()
		if s.closed {
			return
		}
		again := false
		for _, ev := range e.Events {
			last := int64(len(s.events))
			switch {
			case ev.Seq == last+1:
				s.events = append(s.events, ev)
			case ev.Seq <= last && reflect.DeepEqual(ev, s.events[ev.Seq-1]):
				again = true // committed, and its answer was lost or late
			default:
				p.t.Errorf("run %s: event %d (%s) after %d", e.Run, ev.Seq, ev.Kind, last)
			}
		}
		if again {
			if s.again++; s.again > 5 {
				p.t.Errorf("run %s: events that are committed were sent again %d times", e.Run, s.again)
			}
		}
	})
	return out, nil
}

func (p *plane) send(c protocol.Command) {
	p.t.Helper()
	if c.ID == "" {
		c.ID = id.New()
	}
	p.change(func() { p.commands = append(p.commands, c) })
	p.bus.Nudge(boxID, protocol.NudgeCommands)
}

// task queues a run and returns its id.
func (p *plane) task(change func(*protocol.Start)) string {
	s := protocol.Start{
		Run: id.New(), Attempt: 1, Task: id.Random(), Kind: "work", LeaseMS: p.lease.Milliseconds(), Repo: "o/demo",
		CloneURL: p.http.URL + "/git/demo.git", DefaultRef: "main", Branch: "svc/t--12345678", Agent: "builtin", Model: "m",
		TimeoutMS: time.Hour.Milliseconds(), GatewayURL: p.http.URL, ModelToken: modelToken, GitToken: gitToken,
		CommitName: "Agent", CommitEmail: "agent@example.test",
	}
	change(&s)
	p.change(func() { p.queue = append(p.queue, s) })
	return s.Run
}

// config enrolls a machine.
func (p *plane) config() box.Config {
	p.t.Helper()
	dir := p.t.TempDir()
	// The agent of a root box is another user, who must get through.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		p.t.Fatal(err)
	}
	identity, err := box.Enroll(context.Background(), p.http.URL, enrollToken, box.Info{Name: "test", Slots: 2})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := identity.Save(dir); err != nil {
		p.t.Fatal(err)
	}
	p.data = dir
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return box.Config{DataDir: dir, Name: "test", Slots: 2, Version: "1", Logger: log, Timing: box.Timing{
		Beat: 200 * time.Millisecond, ClaimWait: 2 * time.Second, Retry: 20 * time.Millisecond,
		// No run meets these, nor two of them at once.
		Leave: time.Hour, Wrap: 2 * time.Hour, Stall: 3 * time.Hour, Grace: 2 * time.Second,
	}}
}

// start runs a box; stop ends it gently, and gives what Run returned.
func (p *plane) start(cfg box.Config) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- box.Run(ctx, cfg) }()
	stop = sync.OnceValue(func() error {
		cancel()
		err, ok := patience.Take(p.t, ended)
		if !ok {
			err = errors.New("the box did not end")
		}
		return err
	})
	p.t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, box.ErrRevoked) {
			p.t.Error(err)
		}
	})
	return stop
}
