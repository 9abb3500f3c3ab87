package acp

import (
	"context"
	"encoding/json"
	"io"
	"sync"
)

// Agent is the agent that Serve serves. An *Error that it returns is sent
// unchanged; any other error becomes an internal error with its text.
type Agent interface {
	Initialize(ctx context.Context, req InitializeRequest) (InitializeResult, error)
	NewSession(ctx context.Context, req SessionRequest) (Session, error)
	// Prompt runs one turn. Its ctx ends when the client cancels the session;
	// Prompt should then return StopCancelled soon, and no error.
	Prompt(ctx context.Context, req PromptRequest) (PromptResult, error)
}

// Peer is the client as an agent sees it.
type Peer struct{ c *conn }

// Update sends the client an update of a session.
func (p *Peer) Update(sessionID string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return p.c.notify(methodUpdate, update{SessionID: sessionID, Update: raw})
}

// RequestPermission asks the client for a permission and waits for the answer. The
// end of ctx gives the outcome "cancelled".
func (p *Peer) RequestPermission(ctx context.Context, req PermissionRequest) (PermissionOutcome, error) {
	var out permissionResult
	err := p.c.call(ctx, methodPermission, req, &out)
	if ctx.Err() != nil {
		return Cancelled(), nil
	}
	return out.Outcome, err
}

// Serve serves an agent on r and w until r or ctx ends. It then cancels running
// turns. When r ends, Serve waits for the turns and returns nil for a clean end.
// When ctx ends first, Serve returns without waiting for r, which its owner must
// close.
func Serve(ctx context.Context, r io.Reader, w io.Writer, start func(*Peer) Agent) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &serverSide{ctx: ctx, turns: map[string]context.CancelFunc{}}
	c := newConn(w, s)
	s.agent = start(&Peer{c})

	ended := make(chan error, 1)
	go func() { ended <- c.read(r) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	cancel()
	if err == nil {
		c.answers.Wait()
	}
	return err
}

type serverSide struct {
	ctx   context.Context
	agent Agent

	mu    sync.Mutex
	turns map[string]context.CancelFunc // running turns by session
}

func (s *serverSide) notify(method string, params json.RawMessage) {
	var p sessionChoice
	if method != methodCancel || json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.turns[p.SessionID]; cancel != nil {
		cancel()
	}
}

func (s *serverSide) request(method string, params json.RawMessage) func() (any, error) {
	switch method {
	case methodInitialize:
		return decode(s, params, s.agent.Initialize)
	case methodNew:
		return decode(s, params, s.agent.NewSession)
	case methodPrompt:
		return s.prompt(params)
	}
	return fail(Errorf(CodeMethodNotFound, "this agent does not offer %s", method))
}

func decode[In, Out any](s *serverSide, params json.RawMessage, f func(context.Context, In) (Out, error)) func() (any, error) {
	return func() (any, error) {
		var in In
		if err := json.Unmarshal(params, &in); err != nil {
			return nil, Errorf(CodeInvalidParams, "%s", err)
		}
		return f(s.ctx, in)
	}
}

// prompt registers the turn before the next line is read, so that a cancel on the
// next line finds it.
func (s *serverSide) prompt(params json.RawMessage) func() (any, error) {
	var req PromptRequest
	if err := json.Unmarshal(params, &req); err != nil {
		return fail(Errorf(CodeInvalidParams, "%s", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[req.SessionID] != nil {
		return fail(Errorf(CodeInvalidRequest, "a turn of session %s is running", req.SessionID))
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.turns[req.SessionID] = cancel
	return func() (any, error) {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.turns, req.SessionID)
			cancel()
		}()
		return s.agent.Prompt(ctx, req)
	}
}
