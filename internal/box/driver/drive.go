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
)

const (
	// startLimit is for an agent's own start up to the first prompt; the slowest
	// took 16 s on an idle machine.
	startLimit = 2 * time.Minute
	// cancelLimit is what a cancelled turn has to end in before it is given up.
	cancelLimit = 8 * time.Second
	// maxFinalText caps Outcome.FinalText, in bytes; the end is what is kept.
	maxFinalText = 64 << 10
)

// Message is said to a running agent. It becomes the prompt of a turn of its
// own once the running turn is over; Interrupt ends that turn first, and goes
// before messages that wait.
type Message struct {
	ID        string
	Text      string
	Interrupt bool
}

// Hooks are told what happens, in order and never after Drive has returned.
// They must not block: the agent is not read meanwhile. Each may be nil.
type Hooks struct {
	Started    func(session, version string) // version as the agent gives it, else as it was found
	Update     func(raw json.RawMessage)     // a session update as the agent sent it
	Permission func(raw json.RawMessage)     // a permission request; it is granted, once
	Prompted   func(m Message)               // a message begins its turn

	// Turned and Idle may take a moment. Turned is told of each turn that is
	// over, of the message it began with (none for the first) and of the turn's
	// closing prose. Idle is asked when nothing is left to do: for how long to
	// wait for a message all the same.
	Turned func(m Message, reply string)
	Idle   func() time.Duration
}

// Outcome is how the work ended. Stop is the last turn's stop reason, or
// "cancelled" whenever ctx ended the work.
type Outcome struct {
	Stop      string
	SessionID string
	FinalText string // the last turn's prose since its last tool call
	Turns     int
}

// Drive runs one session of an agent process on its streams: the prompt, then
// every message that arrived before the last turn ended. It closes stdin before
// it returns, which ends most agents; stdout is read until it ends, also after
// the return, so the caller must end the process.
//
// When ctx ends, the turn is cancelled and has eight seconds to end; that is no
// error. Otherwise an error is ErrAgentExited, an *AgentError or a broken
// protocol; FailureKind tells its kind.
func Drive(ctx context.Context, launch Launch, stdin io.WriteCloser, stdout io.Reader, prompt string, msgs <-chan Message, h Hooks) (Outcome, error) {
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

// session is one conversation; the fields above mu belong to Drive's goroutine.
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
	info, err := s.client.Initialize(ctx, acp.Implementation{Name: "yardmaster", Version: ownVersion()})
	if err != nil {
		return startError(ctx, err)
	}
	opened, err := s.client.NewSession(ctx, s.launch.Dir, taken(info.AgentCapabilities, s.launch.Servers))
	if err != nil {
		return startError(ctx, err)
	}
	if err := s.choose(ctx, opened); err != nil {
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

// taken are the servers whose transport the agent says that it speaks; an agent
// may refuse a session for the sake of another.
func taken(can acp.AgentCapabilities, servers []acp.MCPServer) []acp.MCPServer {
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

// choose sets the mode and the model where the agent offers them. One that is
// not offered was set by the agent's configuration, or does not exist there.
func (s *session) choose(ctx context.Context, o acp.Session) error {
	mode, model := s.launch.Mode, s.launch.Model
	if m := o.Modes; m != nil && m.Current != mode && slices.ContainsFunc(m.Available, func(m acp.Mode) bool { return m.ID == mode }) {
		if err := s.client.SetMode(ctx, o.SessionID, mode); err != nil {
			return err
		}
	}
	for _, option := range o.Config {
		if option.Category != "model" || names(option.Selected(), model) {
			continue
		}
		if i := slices.IndexFunc(option.Values(), func(v string) bool { return names(v, model) }); i >= 0 {
			return s.client.SetConfigOption(ctx, o.SessionID, option.ID, option.Values()[i])
		}
	}
	if m := o.Models; m != nil && !names(m.Current, model) {
		if i := slices.IndexFunc(m.Available, func(m acp.Model) bool { return names(m.ID, model) }); i >= 0 {
			return s.client.SetModel(ctx, o.SessionID, m.Available[i].ID)
		}
	}
	return nil
}

// names tells whether an agent's id means model: some put their provider first.
func names(id, model string) bool { return id == model || strings.HasSuffix(id, "/"+model) }

// converse runs turns until none is left to run.
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
		if ctx.Err() != nil || len(s.queue) == 0 && !s.linger(ctx) {
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

// linger waits for a message if somebody wants the session kept. It tells
// whether one came.
func (s *session) linger(ctx context.Context) bool {
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
	case <-s.client.Done(): // nobody is left to be told
	}
	return false
}

// receive takes a message that is there already.
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

// turn prompts and waits for the turn to end. A second prompt is never sent
// meanwhile: agents steer, queue, cancel or run both, each its own way.
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
				e.err = s.toldFailure()
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

// toldFailure finds a failure that the agent only wrote of: some end a turn as if
// all were well when the provider refused them for good.
func (s *session) toldFailure() error {
	for paragraph := range strings.SplitSeq(s.finalText(), "\n") {
		for _, words := range s.launch.Failed {
			if strings.HasPrefix(paragraph, words) {
				return &AgentError{Kind: classify(0, paragraph), Message: paragraph}
			}
		}
	}
	return nil
}

// cancel does not wait for an agent that has stopped reading.
func (s *session) cancel() {
	go func() { _ = s.client.Cancel(s.id) }() // if it fails the agent is gone, and the prompt fails with it
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

// Permission implements acp.Handler: inside the sandbox everything is allowed,
// each time anew so that each time is seen.
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
