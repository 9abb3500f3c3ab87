package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Handler handles the messages that an agent sends on its own. Both methods are
// called in stream order on the goroutine that reads the stream. They must not
// block, because the agent's output is not read meanwhile.
type Handler interface {
	// Update handles a session update, as the agent sent it.
	Update(sessionID string, update json.RawMessage)
	// Permission answers a permission request; raw is the request as sent.
	Permission(req PermissionRequest, raw json.RawMessage) PermissionOutcome
}

// Client drives one agent process. Its methods may be called concurrently; a
// session takes one prompt at a time.
type Client struct{ c *conn }

// NewClient starts to read the agent's standard output r and writes requests to its
// standard input w. It reads until r ends; the owner of the process has to end r.
func NewClient(w io.Writer, r io.Reader, h Handler) *Client {
	c := &Client{newConn(w, clientSide{h})}
	go func() { _ = c.c.read(r) }() // the calls that fail because of it return the error
	return c
}

// Done returns a channel that is closed when the agent's output has ended.
func (c *Client) Done() <-chan struct{} { return c.c.done }

// Initialize opens the connection and offers the agent no capabilities. It returns
// an error if the agent does not speak version 1.
func (c *Client) Initialize(ctx context.Context, self Implementation) (InitializeResult, error) {
	var out InitializeResult
	err := c.c.call(ctx, methodInitialize, InitializeRequest{ProtocolVersion: ProtocolVersion, ClientInfo: &self}, &out)
	if err == nil && out.ProtocolVersion != ProtocolVersion {
		err = fmt.Errorf("acp: the agent answered protocol version %d, this client speaks %d",
			out.ProtocolVersion, ProtocolVersion)
	}
	return out, err
}

// NewSession opens a session that works in cwd, an absolute path as the agent sees
// it. It returns an error if the answer has no session id.
func (c *Client) NewSession(ctx context.Context, cwd string, servers []MCPServer) (Session, error) {
	return c.open(ctx, methodNew, SessionRequest{Cwd: cwd, MCPServers: servers})
}

// LoadSession reopens a session. The agent replays its history as updates; some
// agents do so only after the answer.
func (c *Client) LoadSession(ctx context.Context, id, cwd string, servers []MCPServer) (Session, error) {
	return c.open(ctx, methodLoad, SessionRequest{SessionID: id, Cwd: cwd, MCPServers: servers})
}

// ResumeSession reopens a session without a replay.
func (c *Client) ResumeSession(ctx context.Context, id, cwd string, servers []MCPServer) (Session, error) {
	return c.open(ctx, methodResume, SessionRequest{SessionID: id, Cwd: cwd, MCPServers: servers})
}

func (c *Client) open(ctx context.Context, method string, req SessionRequest) (Session, error) {
	if req.MCPServers == nil {
		req.MCPServers = []MCPServer{} // the member is required
	}
	out := Session{SessionID: req.SessionID}
	err := c.c.call(ctx, method, req, &out)
	if err == nil && out.SessionID == "" {
		err = fmt.Errorf("acp: the answer to %s carries no session id", method)
	}
	return out, err
}

// SetMode selects one of the session's modes.
func (c *Client) SetMode(ctx context.Context, sessionID, mode string) error {
	return c.c.call(ctx, methodSetMode, sessionChoice{SessionID: sessionID, ModeID: mode}, nil)
}

// SetModel selects one of the session's models, for agents that do not offer the
// model as a configuration option.
func (c *Client) SetModel(ctx context.Context, sessionID, model string) error {
	return c.c.call(ctx, methodSetModel, sessionChoice{SessionID: sessionID, ModelID: model}, nil)
}

// SetConfigOption sets one configuration option of the session.
func (c *Client) SetConfigOption(ctx context.Context, sessionID, option, value string) error {
	return c.c.call(ctx, methodSetConfig, sessionChoice{SessionID: sessionID, ConfigID: option, Value: value}, nil)
}

// Prompt runs one turn and returns its stop reason. The end of ctx does not end the
// turn: call Cancel and wait for Prompt to return.
func (c *Client) Prompt(ctx context.Context, sessionID, text string) (string, error) {
	var out PromptResult
	err := c.c.call(ctx, methodPrompt, PromptRequest{SessionID: sessionID, Prompt: []ContentBlock{Text(text)}}, &out)
	return out.StopReason, err
}

// Cancel asks the agent to end the running turn of a session.
func (c *Client) Cancel(sessionID string) error {
	return c.c.notify(methodCancel, sessionChoice{SessionID: sessionID})
}

type clientSide struct{ h Handler }

func (s clientSide) notify(method string, params json.RawMessage) {
	if method != methodUpdate {
		return // extensions of single agents
	}
	var u update
	if json.Unmarshal(params, &u) == nil && len(u.Update) > 0 {
		s.h.Update(u.SessionID, u.Update)
	}
}

func (s clientSide) request(method string, params json.RawMessage) func() (any, error) {
	if method != methodPermission {
		return fail(Errorf(CodeMethodNotFound, "this client does not offer %s", method))
	}
	var req PermissionRequest
	if err := json.Unmarshal(params, &req); err != nil {
		return fail(Errorf(CodeInvalidParams, "%s: %s", method, err))
	}
	outcome := s.h.Permission(req, params)
	return func() (any, error) { return permissionResult{outcome}, nil }
}

func fail(err *Error) func() (any, error) { return func() (any, error) { return nil, err } }
