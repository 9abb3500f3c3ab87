package logsink

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/dial"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/llm/sink"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// canary is a secret of the vault.
const canary = "correct horse battery staple 42"

// yard is a node whose gateway serves the account acme, and a collector.
type yard struct {
	*Service
	t       *testing.T
	gateway http.Handler
	url     string // of the collector

	mu       sync.Mutex
	received []received
	answer   func(http.ResponseWriter, *http.Request) // of the collector; nil: 200
	vault    func() ([]string, error)
}

type received struct {
	header http.Header
	body   []byte
}

func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		y := &yard{t: t, vault: func() ([]string, error) { return []string{canary}, nil }}
		y.url = y.serve(func(w http.ResponseWriter, r *http.Request, body []byte) {
			y.mu.Lock()
			y.received = append(y.received, received{r.Header, body})
			answer := y.answer
			y.mu.Unlock()
			if answer != nil {
				answer(w, r)
			}
		})
		y.Service = New(Needs{
			DB: d, Hub: event.NewHub(), Ring: seal.New(), Guard: dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
			Secrets: y, Logger: slog.New(slog.DiscardHandler), Clock: time.Now,
		})
		at := make(chan time.Time)
		close(at)
		y.pause = func(int) <-chan time.Time { return at } // no pause
		scenarios, err := scripted.ParseScenarios([]byte("scenarios:\n  - name: hello\n    steps:\n      - text: Good morning.\n"))
		if err != nil {
			t.Fatal(err)
		}
		y.gateway = llm.NewGateway(llm.Config{
			Authorizer: y, Reserver: y, Recorder: y, Logger: y.Logger, Now: time.Now, Scripted: scripted.New(scenarios),
			Tap: tap{y.Service},
		})
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return seed.Add(tx, seed.Account{ID: "acme"}) }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- y.Loop(ctx) }()
		fn(y)
		cancel()
		patience.Receive(t, "the end of the loop", over)
		if held := y.held.Load(); held != 0 {
			t.Errorf("%d bytes are held when all is over", held)
		}
	})
}

// serve runs a server of HTTP for the rest of the test.
func (y *yard) serve(fn func(http.ResponseWriter, *http.Request, []byte)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it has gone away
		}
		fn(w, r, body)
	}))
	y.t.Cleanup(s.Close)
	return s.URL
}

// answers says what the collector does from now on.
func (y *yard) answers(fn func(http.ResponseWriter, *http.Request)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.answer = fn
}

// tap is what package gateway does.
type tap struct{ s *Service }

func (t tap) Keep(g llm.Grant, c llm.Tapped) llm.Copy {
	return t.s.Keep(g.Session.(string), "session", c)
}

func (y *yard) Secrets(*db.Tx) ([]string, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.vault()
}

func (y *yard) Authorize(context.Context, string, llm.API, string) (llm.Grant, error) {
	return llm.Grant{Routes: []llm.Route{{Provider: llm.Scripted}}, Session: "acme"}, nil
}
func (y *yard) Reserve(context.Context, llm.Grant, llm.Route, llm.Quote) (int64, error) {
	return 0, nil
}
func (y *yard) Record(context.Context, llm.Grant, llm.Route, llm.Usage) {}

// call makes one streamed call with a prompt.
func (y *yard) call(prompt string) {
	y.t.Helper()
	text, _ := json.Marshal(prompt) // it is text
	body := `{"model":"small","max_tokens":100,"stream":true,"messages":[{"role":"user","content":` + string(text) + `}]}`
	req := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer dev_run_of_nobody")
	rec := httptest.NewRecorder()
	y.gateway.ServeHTTP(rec, req)
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), "message_stop") || !rec.Flushed {
		y.t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func (y *yard) ctx() context.Context {
	return db.WithAccount(policy.With(y.t.Context(), policy.Actor{Credential: policy.PAT, CredentialID: "x", UserID: "ada"}), "acme")
}

// use sets a sink, and waits until the node knows it.
func (y *yard) use(in setIn) {
	y.t.Helper()
	if _, err := y.set(y.ctx(), in); err != nil {
		y.t.Fatal(err)
	}
	patience.Until(y.t, "the node knows the sink", y.known)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.received = nil // the probe
}

// known tells whether the node knows the sink.
func (y *yard) known() bool {
	y.Service.mu.RLock()
	defer y.Service.mu.RUnlock()
	return y.sinks["acme"] != nil
}

// shown waits until what is shown of the sink is as it should be.
func (y *yard) shown(what string, ok func(*LogSinkConfig) bool) {
	y.t.Helper()
	var last LogSink
	defer func() {
		if y.t.Failed() {
			y.t.Logf("%+v", last.Configuration)
		}
	}()
	patience.Until(y.t, what, func() bool {
		y.Hub.Wake(event.LogSinkTopic) // counts are stored at each pass
		var err error
		if last, err = y.get(y.ctx(), op.None{}); err != nil {
			y.t.Error(err)
		}
		return last.Configuration != nil && ok(last.Configuration)
	})
}

func (y *yard) all() []received {
	y.mu.Lock()
	defer y.mu.Unlock()
	return append([]received{}, y.received...)
}

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// A call arrives with what was said, without the secret, and is counted.
func TestCallsArrive(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.call("before there is a sink")
		y.use(setIn{Kind: sink.HTTPS, URL: y.url + "/in", Headers: map[string]string{"Authorization": "Bearer of-the-collector"}})
		y.call("hello " + canary + " and of-the-collector")
		y.shown("the call is counted", func(c *LogSinkConfig) bool { return c.Sent == 1 && c.LastSentAt != nil && c.LastError == nil })
		all := y.all()
		if len(all) != 1 || all[0].header.Get("Authorization") != "Bearer of-the-collector" ||
			all[0].header.Get("Content-Type") != "application/x-ndjson" {
			t.Fatalf("received %v", all)
		}
		var c sink.Call
		if err := json.Unmarshal(all[0].body, &c); err != nil {
			t.Fatalf("%v: %s", err, all[0].body)
		}
		text := string(all[0].body)
		if c.AccountID != "acme" || c.SessionID != "session" || c.Model != "small" || c.Status != 200 || c.Usage.Output == 0 || c.Aborted ||
			!strings.Contains(text, "Scripted session") || !strings.Contains(text, "hello [redacted]") {
			t.Errorf("received %s", text)
		}
		if strings.Contains(text, canary) || strings.Contains(text, "of-the-collector") || strings.Contains(text, "before") {
			t.Errorf("received %s", text)
		}
		if _, err := y.clear(y.ctx(), op.None{}); err != nil {
			t.Fatal(err)
		}
		patience.Until(t, "the node forgets the sink", func() bool { return !y.known() })
		y.call("after that")
		if n := len(y.all()); n != 1 {
			t.Errorf("%d batches, also after it was cleared", n)
		}
	})
}

// While a collector takes a batch and does not answer, calls go on; those for which there is
// no room are dropped, and every call is counted once.
func TestHangingCollectorHoldsNoCall(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.room, y.share = 64<<10, 48<<10
		y.use(setIn{Kind: sink.HTTPS, URL: y.url})
		taken, hold := make(chan struct{}, 1000), make(chan struct{})
		y.answers(func(_ http.ResponseWriter, r *http.Request) {
			taken <- struct{}{}
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		})
		y.call("first")
		patience.Receive(t, "a batch is with the collector", taken)
		const calls = 1000
		for range calls - 1 {
			y.call("hello")
			if held := y.held.Load(); held > y.room {
				t.Fatalf("%d bytes are held, of %d", held, y.room)
			}
		}
		// All calls are over, and the collector has not answered.
		y.shown("drops are counted meanwhile", func(c *LogSinkConfig) bool { return c.Dropped > calls/2 && c.Sent == 0 })
		y.answers(nil)
		close(hold)
		y.shown("each call is counted once", func(c *LogSinkConfig) bool { return c.Sent+c.Failed+c.Dropped == calls && c.Sent > 1 })
		patience.Until(t, "nothing is held", func() bool { return y.held.Load() == 0 })
	})
}

// A collector that is down is tried three times, and the calls are given up; when it is back,
// the next ones arrive.
func TestDeadCollector(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.use(setIn{Kind: sink.OTLP, URL: y.url})
		y.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
		y.call("hello")
		y.shown("the call is given up", func(c *LogSinkConfig) bool {
			return c.Failed == 1 && c.Sent == 0 && c.LastError != nil && *c.LastError == "The answer has the status 503."
		})
		if n := len(y.all()); n != tries {
			t.Errorf("it was tried %d times", n)
		}
		y.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) })
		y.call("hello")
		y.shown("it is refused", func(c *LogSinkConfig) bool { return c.Failed == 2 })
		if n := len(y.all()); n != tries+1 {
			t.Errorf("a refusal was tried %d times", n-tries)
		}
		y.answers(nil)
		y.call("hello")
		y.shown("it is back", func(c *LogSinkConfig) bool { return c.Sent == 1 && c.LastError == nil })
		y.answers(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"partialSuccess":{"rejectedSpans":"1"}}`))
		})
		y.call("hello")
		y.shown("it has rejected one", func(c *LogSinkConfig) bool { return c.Sent == 1 && c.Failed == 3 && c.LastError != nil })
		if last := y.all()[tries+1]; !bytes.Contains(last.body, []byte("gen_ai.input.messages")) {
			t.Errorf("received %s", last.body)
		}
	})
}

// A redirect is not followed: neither by the probe nor with calls.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		elsewhere := y.serve(func(http.ResponseWriter, *http.Request, []byte) { t.Error("somebody else was sent something") })
		away := func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}
		y.answers(away)
		for _, kind := range []sink.Kind{sink.HTTPS, sink.OTLP, sink.S3} {
			in := setIn{Kind: kind, URL: y.url + "/bucket"}
			if kind == sink.S3 {
				in.Access, in.Secret = "id", "secret-of-it"
			}
			if _, err := y.set(y.ctx(), in); fault.From(err).Slug != slugRefused {
				t.Errorf("%s: %v", kind, err)
			}
		}
		y.answers(nil)
		y.use(setIn{Kind: sink.HTTPS, URL: y.url})
		y.answers(away)
		y.call("hello")
		y.shown("it is given up", func(c *LogSinkConfig) bool { return c.Failed == 1 && strings.Contains(*c.LastError, "redirect") })
	})
}

// Nothing leaves while it is not known what must not.
func TestNothingLeavesWithUnknownSecrets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.use(setIn{Kind: sink.HTTPS, URL: y.url})
		y.mu.Lock()
		y.vault = func() ([]string, error) { return nil, errors.New("sealed with another key") }
		y.mu.Unlock()
		y.call("hello " + canary)
		y.shown("it is given up", func(c *LogSinkConfig) bool { return c.Failed == 1 && strings.Contains(*c.LastError, "secrets") })
		if all := y.all(); len(all) != 0 {
			t.Errorf("received %v", all)
		}
	})
}

// Many calls are few batches, each of a line for a call.
func TestBatches(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.use(setIn{Kind: sink.HTTPS, URL: y.url})
		const calls = 250
		for range calls {
			y.call("hello")
		}
		y.shown("all have arrived", func(c *LogSinkConfig) bool { return c.Sent == calls })
		n := 0
		for _, r := range y.all() {
			of := 0
			for s := bufio.NewScanner(bytes.NewReader(r.body)); s.Scan(); of++ {
				if !json.Valid(s.Bytes()) {
					t.Errorf("line %s", s.Text())
				}
			}
			if n += of; of > batchSize {
				t.Errorf("a batch of %d", of)
			}
		}
		if n != calls {
			t.Errorf("%d calls arrived", n)
		}
	})
}
