package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/box/acp"
	"yardmaster/internal/version"
)

const (
	// startLimit limits an agent's start up to the first prompt; the slowest took
	// 16 s on an idle machine.
	startLimit = 2 * time.Minute
	// cancelLimit limits how long a cancelled turn may take to end.
	cancelLimit = 8 * time.Second
	// maxFinalText limits Outcome.FinalText, in bytes; the end is kept.
	maxFinalText = 64 << 10
)

// Message is a message to a running agent. It becomes the prompt of a turn of its
// own after the running turn. With Interrupt it ends the running turn and precedes
// waiting messages.
type Message struct {
	ID        string
	Text      string
	Interrupt bool
}

// Hooks are functions that Drive calls, in order and never after it has returned.
// They must not block, because the agent's output is not read meanwhile. Each may
// be nil.
type Hooks struct {
	Started    func(session, version string) // version as the agent reports it, else as Detect found it
	Update     func(raw json.RawMessage)     // a session update, as the agent sent it
	Permission func(raw json.RawMessage)     // a permission request; it is granted, once
	Prompted   func(m Message)               // a message begins its turn

	// Turned and Idle may take a moment. Turned is called after each turn with the
	// message that began it (empty for the first) and the turn's closing text. Idle
	// is called when nothing is left to do, and returns how long to wait for
	// another message.
	Turned func(m Message, reply string)
	Idle   func() time.Duration
}

// Outcome is the result of a session. Stop is the last turn's stop reason, or
// "cancelled" if ctx ended the session.
type Outcome struct {
	Stop      string
	SessionID string
	FinalText string // the text of the last turn after its last tool call
	Turns     int
}

// Drive runs one session of an agent process on its streams: the prompt, then every
// message that arrives before the last turn ends. It closes stdin before it
// returns, which ends most agents. It reads stdout until that ends, even after it
// has returned, so the caller must end the process.
//
// When ctx ends, Drive cancels the turn and gives it eight seconds to end; that is
// no error. Other errors are ErrAgentExited, an *AgentError or a violation of the
// protocol; FailureKind tells the kind.
func Drive(
	ctx context.Context, launch Launch, stdin io.WriteCloser, stdout io.Reader,
	prompt string, msgs <-chan Message, h Hooks,
) (Outcome, error) {
	s := &session{launch: launch, hooks: h, msgs: msgs}
	s.client = acp.NewClient(stdin, stdout, s)
	defer stdin.Close()
	defer s.stop()

	err := s.start(ctx)
	if err == nil {
		err = s.converse(ctx, Message{Text: prompt})
	}
	out := Outcome{Stop: s.reason, SessionID: s.id, FinalText: s.finalText(), Turns: s.turns}
	if ctx.Err() != nil {
		out.Stop = acp.StopCancelled
		return out, nil
	}
	if err != nil {
		return out, agentFailure(err)
	}
	return out, nil
}

// session is one conversation; only Drive's goroutine uses the fields above mu.
type session struct {
	launch Launch
	client *acp.Client
	msgs   <-chan Message
	queue  []Message
	turns  int
	reason string

	mu      sync.Mutex // held while a hook runs
	hooks   Hooks
	stopped bool
	id      string
	prose   []byte
}

func (s *session) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("the agent did not start within %s", startLimit))
	defer cancel()
	info, err := s.client.Initialize(ctx, acp.Implementation{Name: "yardmaster", Version: version.Own})
	if err != nil {
		return startError(ctx, err)
	}
	opened, err := s.client.NewSession(ctx, s.launch.Dir, supportedServers(info.AgentCapabilities, s.launch.Servers))
	if err != nil {
		return startError(ctx, err)
	}
	if err := s.selectModeAndModel(ctx, opened); err != nil {
		return startError(ctx, err)
	}
	version := s.launch.Version
	if info.AgentInfo != nil && info.AgentInfo.Version != "" {
		version = info.AgentInfo.Version
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = opened.SessionID
	if s.hooks.Started != nil {
		s.hooks.Started(s.id, version)
	}
	return nil
}

// supportedServers lists the servers whose transport the agent supports, because an agent may
// refuse a session with any other.
func supportedServers(can acp.AgentCapabilities, servers []acp.MCPServer) []acp.MCPServer {
	return slices.DeleteFunc(slices.Clone(servers), func(m acp.MCPServer) bool {
		return m.Type == acp.TransportHTTP && !can.MCP.HTTP || m.Type == acp.TransportSSE && !can.MCP.SSE
	})
}

func startError(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

// selectModeAndModel sets the mode and the model if the agent offers them. Otherwise the
// agent's configuration has set them, or the agent has no such choice.
func (s *session) selectModeAndModel(ctx context.Context, o acp.Session) error {
	mode, model := s.launch.Mode, s.launch.Model
	offers := func(m acp.Mode) bool { return m.ID == mode }
	if m := o.Modes; m != nil && m.Current != mode && slices.ContainsFunc(m.Available, offers) {
		if err := s.client.SetMode(ctx, o.SessionID, mode); err != nil {
			return err
		}
	}
	for _, option := range o.Config {
		if option.Category != "model" || isModel(option.Selected(), model) {
			continue
		}
		if i := slices.IndexFunc(option.Values(), func(v string) bool { return isModel(v, model) }); i >= 0 {
			return s.client.SetConfigOption(ctx, o.SessionID, option.ID, option.Values()[i])
		}
	}
	if m := o.Models; m != nil && !isModel(m.Current, model) {
		if i := slices.IndexFunc(m.Available, func(m acp.Model) bool { return isModel(m.ID, model) }); i >= 0 {
			return s.client.SetModel(ctx, o.SessionID, m.Available[i].ID)
		}
	}
	return nil
}

// isModel tells whether an agent's id means model: some agents prefix it with their
// provider.
func isModel(id, model string) bool { return id == model || strings.HasSuffix(id, "/"+model) }

// converse runs turns until no message is left.
func (s *session) converse(ctx context.Context, m Message) error {
	for {
		err := s.turn(ctx, m)
		if s.hooks.Turned != nil {
			s.hooks.Turned(m, s.finalText())
		}
		if err != nil {
			return err
		}
		for s.receive() {
		}
		if ctx.Err() != nil || len(s.queue) == 0 && !s.awaitMessage(ctx) {
			return ctx.Err()
		}
		m, s.queue = s.queue[0], s.queue[1:]
		s.hook(func() {
			if s.hooks.Prompted != nil {
				s.hooks.Prompted(m)
			}
		})
	}
}

// awaitMessage waits for a message as long as Hooks.Idle says, and tells whether one
// came.
func (s *session) awaitMessage(ctx context.Context) bool {
	if s.hooks.Idle == nil {
		return false
	}
	window := s.hooks.Idle()
	if window <= 0 {
		return false
	}
	over := time.NewTimer(window)
	defer over.Stop()
	select {
	case m, ok := <-s.msgs:
		s.enqueue(m, ok)
		return ok
	case <-over.C:
	case <-ctx.Done():
	case <-s.client.Done(): // the agent has exited
	}
	return false
}

// receive takes a message without waiting.
func (s *session) receive() bool {
	select {
	case m, ok := <-s.msgs:
		s.enqueue(m, ok)
		return ok
	default:
		return false
	}
}

func (s *session) enqueue(m Message, ok bool) {
	switch {
	case !ok:
		s.msgs = nil
	case m.Interrupt:
		i := slices.IndexFunc(s.queue, func(m Message) bool { return !m.Interrupt })
		if i < 0 {
			i = len(s.queue)
		}
		s.queue = slices.Insert(s.queue, i, m)
	default:
		s.queue = append(s.queue, m)
	}
}

// turn sends a prompt and waits for the turn to end. It never sends a second prompt
// meanwhile, because agents differ in whether they steer, queue, cancel or run
// both.
func (s *session) turn(ctx context.Context, m Message) error {
	s.turns++
	s.hook(func() { s.prose = nil })
	waiting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	type end struct {
		reason string
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		reason, err := s.client.Prompt(waiting, s.id, m.Text)
		ended <- end{reason, err}
	}()

	interrupted := false
	cancelled := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case e := <-ended:
			s.reason = e.reason
			var answered *acp.Error
			if interrupted && errors.As(e.err, &answered) {
				s.reason, e.err = acp.StopCancelled, nil // some agents answer a cancelled turn with an error
			}
			if e.err == nil && e.reason == acp.StopEndTurn && !interrupted {
				e.err = s.reportedFailure()
			}
			return e.err
		case m, ok := <-s.msgs:
			s.enqueue(m, ok)
			if m.Interrupt && !interrupted {
				interrupted = true
				s.cancel()
			}
		case <-cancelled:
			cancelled = nil
			late = time.After(cancelLimit)
			s.cancel()
		case <-late:
			return ctx.Err()
		}
	}
}

// reportedFailure finds a failure that the agent only mentions in its text: some agents
// end a turn normally after the provider has refused them for good.
func (s *session) reportedFailure() error {
	for paragraph := range strings.SplitSeq(s.finalText(), "\n") {
		for _, words := range s.launch.Failed {
			if strings.HasPrefix(paragraph, words) {
				return &AgentError{Kind: classify(0, paragraph), Message: paragraph}
			}
		}
	}
	return nil
}

// cancel does not wait, because the agent may have stopped reading.
func (s *session) cancel() {
	go func() { _ = s.client.Cancel(s.id) }() // if it fails, the agent has exited, and the prompt fails as well
}

func (s *session) hook(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		f()
	}
}

func (s *session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

func (s *session) finalText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(s.prose), ""))
}

// Update implements acp.Handler.
func (s *session) Update(_ string, raw json.RawMessage) {
	s.hook(func() {
		s.keepProse(raw)
		if s.hooks.Update != nil {
			s.hooks.Update(raw)
		}
	})
}

func (s *session) keepProse(raw json.RawMessage) {
	var u struct {
		Kind    string          `json:"sessionUpdate"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return
	}
	switch u.Kind {
	case acp.UpdateToolCall:
		s.prose = nil
	case acp.UpdateMessageChunk:
		var c acp.ContentBlock
		if json.Unmarshal(u.Content, &c) == nil {
			s.prose = append(s.prose, c.Text...)
		}
		if over := len(s.prose) - maxFinalText; over > 0 {
			s.prose = slices.Delete(s.prose, 0, over)
		}
	}
}

// Permission implements acp.Handler. It allows everything inside the sandbox, each
// time anew so that each request is seen.
func (s *session) Permission(req acp.PermissionRequest, raw json.RawMessage) acp.PermissionOutcome {
	answer := acp.Cancelled()
	s.hook(func() {
		if s.hooks.Permission != nil {
			s.hooks.Permission(raw)
		}
		for _, kind := range []string{acp.AllowOnce, acp.AllowAlways} {
			if i := slices.IndexFunc(req.Options, func(o acp.PermissionOption) bool { return o.Kind == kind }); i >= 0 {
				answer = acp.Selected(req.Options[i].ID)
				return
			}
		}
	})
	return answer
}
