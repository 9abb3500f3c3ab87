package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"yardmaster/internal/proof/patience"
)

// peer is a scripted agent at the far end of two pipes: the test reads what the
// client sent and writes lines by hand.
type peer struct {
	t   *testing.T
	in  *bufio.Reader
	out *io.PipeWriter
}

func (p *peer) read() message {
	p.t.Helper()
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("read what the client sent: %v", err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		p.t.Fatalf("the client sent %q: %v", line, err)
	}
	return m
}

func (p *peer) write(format string, a ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.out, format+"\n", a...); err != nil {
		p.t.Fatalf("write to the client: %v", err)
	}
}

// recorder keeps what it handled, in order.
type recorder struct {
	log    []string
	choose func(PermissionRequest) PermissionOutcome
}

func (r *recorder) Update(session string, update json.RawMessage) {
	r.log = append(r.log, session+" "+string(update))
}

func (r *recorder) Permission(req PermissionRequest, _ json.RawMessage) PermissionOutcome {
	r.log = append(r.log, "permission")
	return r.choose(req)
}

func connect(t *testing.T, h Handler) (*Client, *peer) {
	t.Helper()
	agentIn, clientOut := io.Pipe()
	clientIn, agentOut := io.Pipe()
	c := NewClient(clientOut, clientIn, h)
	t.Cleanup(func() {
		agentOut.Close()
		agentIn.Close()
		<-c.Done()
	})
	return c, &peer{t, bufio.NewReader(agentIn), agentOut}
}

func TestUpdatesComeBeforeTheResponseTheyPrecede(t *testing.T) {
	rec := &recorder{}
	c, p := connect(t, rec)
	const n = 5000 // far over any queue one might have put in between
	go func() {
		m := p.read()
		p.write("a banner that is no JSON")
		for i := range n {
			p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"never_heard_of","n":%d}}}`, i)
		}
		p.write(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
	}()
	stop, err := c.Prompt(t.Context(), "s", "go")
	if err != nil || stop != StopEndTurn {
		t.Fatalf("prompt: %q, %v", stop, err)
	}
	if len(rec.log) != n {
		t.Fatalf("%d updates before the response, want %d", len(rec.log), n)
	}
	for i, got := range rec.log {
		if want := fmt.Sprintf(`s {"sessionUpdate":"never_heard_of","n":%d}`, i); got != want {
			t.Fatalf("update %d is %s, want %s", i, got, want)
		}
	}
}

func TestLongLines(t *testing.T) {
	rec := &recorder{}
	c, p := connect(t, rec)
	text := strings.Repeat("z", 12<<20)
	go func() {
		m := p.read()
		p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"text":"%s"}}}`, text)
		p.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}()
	if err := c.SetMode(t.Context(), "s", "m"); err != nil {
		t.Fatal(err)
	}
	if len(rec.log) != 1 || len(rec.log[0]) < len(text) {
		t.Fatalf("the long update was lost")
	}
}

func TestInitializeOffersNothingAndWantsVersionOne(t *testing.T) {
	for version, ok := range map[int]bool{1: true, 2: false} {
		c, p := connect(t, &recorder{})
		sent := make(chan string, 1)
		go func() {
			m := p.read()
			sent <- string(m.Params)
			p.write(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%d,"agentCapabilities":{"loadSession":true,`+
				`"sessionCapabilities":{"resume":{}}},"agentInfo":{"name":"x","version":"7"}}}`, m.ID, version)
		}()
		out, err := c.Initialize(t.Context(), Implementation{Name: "test", Version: "1"})
		if (err == nil) != ok {
			t.Errorf("version %d: error %v", version, err)
		}
		if !out.AgentCapabilities.LoadSession || out.AgentCapabilities.SessionCapabilities.Resume == nil || out.AgentInfo.Version != "7" {
			t.Errorf("decoded %+v", out)
		}
		want := `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},` +
			`"clientInfo":{"name":"test","version":"1"}}`
		if got := <-sent; got != want {
			t.Errorf("sent %s\nwant %s", got, want)
		}
	}
}

func TestSessionRequests(t *testing.T) {
	c, p := connect(t, &recorder{})
	ctx := t.Context()
	calls := []struct {
		call   func() error
		method string
		params string
	}{
		{func() error { _, err := c.NewSession(ctx, "/task", nil); return err }, "session/new", `{"cwd":"/task","mcpServers":[]}`},
		{func() error { _, err := c.LoadSession(ctx, "s", "/task", nil); return err }, "session/load",
			`{"sessionId":"s","cwd":"/task","mcpServers":[]}`},
		{func() error { _, err := c.ResumeSession(ctx, "s", "/task", nil); return err }, "session/resume",
			`{"sessionId":"s","cwd":"/task","mcpServers":[]}`},
		{func() error { return c.SetMode(ctx, "s", "m") }, "session/set_mode", `{"sessionId":"s","modeId":"m"}`},
		{func() error { return c.SetModel(ctx, "s", "m") }, "session/set_model", `{"sessionId":"s","modelId":"m"}`},
		{func() error { return c.SetConfigOption(ctx, "s", "o", "v") }, "session/set_config_option",
			`{"sessionId":"s","configId":"o","value":"v"}`},
		{func() error { _, err := c.Prompt(ctx, "s", "hi"); return err }, "session/prompt",
			`{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}`},
	}
	for _, tc := range calls {
		ended := make(chan error, 1)
		go func() { ended <- tc.call() }()
		m := p.read()
		if m.Method != tc.method || string(m.Params) != tc.params {
			t.Errorf("sent %s %s, want %s %s", m.Method, m.Params, tc.method, tc.params)
		}
		p.write(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`, m.ID)
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", tc.method, err)
		}
	}
	go c.Cancel("s")
	if m := p.read(); m.Method != "session/cancel" || m.ID != nil || string(m.Params) != `{"sessionId":"s"}` {
		t.Errorf("cancel was sent as %+v", m)
	}
}

func TestPermissionsAreAnswered(t *testing.T) {
	rec := &recorder{choose: func(r PermissionRequest) PermissionOutcome { return Selected(r.Options[1].ID) }}
	_, p := connect(t, rec)
	p.write(`{"jsonrpc":"2.0","id":"q1","method":"session/request_permission","params":{"sessionId":"s","toolCall":{},` +
		`"options":[{"optionId":"n","kind":"reject_once","name":"No"},{"optionId":"y","kind":"allow_once","name":"Yes"}]}}`)
	if m := p.read(); string(m.ID) != `"q1"` || string(m.Result) != `{"outcome":{"outcome":"selected","optionId":"y"}}` {
		t.Errorf("answered %s %s", m.ID, m.Result)
	}
	p.write(`{"jsonrpc":"2.0","id":2,"method":"fs/write_text_file","params":{}}`)
	if m := p.read(); m.Error == nil || m.Error.Code != CodeMethodNotFound {
		t.Errorf("a file request was answered %+v", m)
	}
}

func TestErrorsAndTheEndOfTheStream(t *testing.T) {
	c, p := connect(t, &recorder{})
	go func() {
		m := p.read()
		p.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"sign in first","data":{"why":"401"}}}`, m.ID)
		p.read()
		p.out.Close()
	}()
	_, err := c.NewSession(t.Context(), "/", nil)
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeAuthRequired || string(e.Data) != `{"why":"401"}` {
		t.Errorf("an answered error is %v", err)
	}
	if _, err = c.Prompt(t.Context(), "s", "x"); !errors.Is(err, ErrClosed) {
		t.Errorf("a call over a stream that ended is %v, want ErrClosed", err)
	}
	if err = c.SetMode(t.Context(), "s", "x"); err == nil {
		t.Error("a call after the end succeeded")
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	c, p := connect(t, &recorder{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := c.Prompt(ctx, "s", "x"); ended <- err }()
	m := p.read()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	p.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID) // a late answer disturbs nothing
	go c.Cancel("s")
	p.read()
}

// slow is an agent whose turns last until they are cancelled.
type slow struct{ peer *Peer }

func (slow) Initialize(context.Context, InitializeRequest) (InitializeResult, error) {
	return InitializeResult{ProtocolVersion: ProtocolVersion}, nil
}

func (slow) NewSession(_ context.Context, r SessionRequest) (Session, error) {
	if r.Cwd == "" {
		return Session{}, Errorf(CodeInvalidParams, "cwd is required")
	}
	return Session{SessionID: "only"}, nil
}

func (s slow) Prompt(ctx context.Context, r PromptRequest) (PromptResult, error) {
	outcome, err := s.peer.RequestPermission(ctx, PermissionRequest{SessionID: r.SessionID,
		Options: []PermissionOption{{ID: "a", Kind: AllowOnce}}})
	if err != nil {
		return PromptResult{}, err
	}
	if err := s.peer.Update(r.SessionID, outcome); err != nil {
		return PromptResult{}, err
	}
	<-ctx.Done()
	return PromptResult{StopReason: StopCancelled}, nil
}

func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agentIn, clientOut := io.Pipe()
		clientIn, agentOut := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- Serve(t.Context(), agentIn, agentOut, func(p *Peer) Agent { return slow{p} }) }()
		rec := &recorder{choose: func(r PermissionRequest) PermissionOutcome { return Selected(r.Options[0].ID) }}
		c := NewClient(clientOut, clientIn, rec)

		if _, err := c.Initialize(t.Context(), Implementation{}); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if _, err := c.NewSession(t.Context(), "", nil); !errors.As(err, &e) || e.Code != CodeInvalidParams {
			t.Errorf("a session without cwd: %v", err)
		}
		s, err := c.NewSession(t.Context(), "/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetMode(t.Context(), s.SessionID, "m"); !errors.As(err, &e) || e.Code != CodeMethodNotFound {
			t.Errorf("a method the agent lacks: %v", err)
		}

		stop := make(chan string, 1)
		go func() {
			reason, err := c.Prompt(t.Context(), s.SessionID, "wait")
			if err != nil {
				t.Error(err)
			}
			stop <- reason
		}()
		synctest.Wait()
		if len(rec.log) != 2 || rec.log[1] != `only {"outcome":"selected","optionId":"a"}` {
			t.Errorf("handled %q", rec.log)
		}
		if _, err := c.Prompt(t.Context(), s.SessionID, "second"); !errors.As(err, &e) || e.Code != CodeInvalidRequest {
			t.Errorf("a second prompt in a turn: %v", err)
		}
		if err := c.Cancel(s.SessionID); err != nil {
			t.Error(err)
		}
		if got := <-stop; got != StopCancelled {
			t.Errorf("stopped with %q", got)
		}
		clientOut.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		agentOut.Close()
		<-c.Done()
	})
}

// TestAskingWithoutReading holds that the memory for a peer that sends requests and
// reads no answers is limited.
func TestAskingWithoutReading(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		request     string
		total, most int64 // most of them are taken while no answer is read
	}{
		"short": {`{"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file"}`, 2 * maxInFlight, maxInFlight + 2},
		"long":  {`{"jsonrpc":"2.0","id":%d,"method":"` + strings.Repeat("m", longRequest) + `"}`, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := connect(t, &recorder{})
			var taken atomic.Int64
			go func() {
				for id := range x.total {
					if _, err := fmt.Fprintf(p.out, x.request+"\n", id); err != nil {
						return
					}
					taken.Add(1)
				}
			}()
			patience.Until(t, "no more is taken", func() bool {
				n := taken.Load()
				return n == x.total || n > 0 && (name == "long" || len(c.c.inFlight) == maxInFlight)
			})
			for id := range x.total { // all are answered once the answers are read
				if n := taken.Load(); n > id+x.most {
					t.Fatalf("%d requests were taken before %d answers were read", n, id)
				}
				if m := p.read(); m.Error == nil || m.Error.Code != CodeMethodNotFound {
					t.Fatalf("answer %d: %+v", id, m)
				}
			}
		})
	}
}
