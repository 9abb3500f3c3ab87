// Package coder is Yardmaster's own coding agent, an ordinary ACP agent on standard
// input and output, which every box can offer. It has four tools, a loop around a
// model, and no state on disk. More tools come from the MCP servers that it is
// given. It asks for no permission and does not restrict its shell, because a box
// runs it in a sandbox.
package coder

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"yardmaster/internal/box/acp"
	"yardmaster/internal/version"
)

// config holds the settings from the environment.
type config struct {
	url, token, model string
	wire              wire
	maxRequests       int // model requests in one turn
	contextTokens     int // size of the model's context
	ask               bool
	report            string   // path for the closing report, "" for none
	shellEnv          []string // environment of the shell tool: the agent's own without the model's token
}

// Main is the agent; it returns when stdin ends. env is in the form of
// os.Environ and is read for
//
//	YARDMASTER_MODEL_URL       address of the model's API, without /v1; required
//	YARDMASTER_MODEL_TOKEN     its credential
//	YARDMASTER_MODEL           the model's name; required
//	YARDMASTER_MODEL_API       chat (the default), messages or responses
//	YARDMASTER_MAX_REQUESTS    model requests a turn may take, default 200
//	YARDMASTER_CONTEXT_TOKENS  size of the model's context, default 128000
//	YARDMASTER_PERMISSION      "ask" to ask before an edit or a command
//	YARDMASTER_REPORT          path to which the model has to write its report
func Main(ctx context.Context, stdin io.Reader, stdout io.Writer, env []string) error {
	cfg, err := parse(env)
	if err != nil {
		return err
	}
	return acp.Serve(ctx, stdin, stdout, func(p *acp.Peer) acp.Agent {
		return &agent{cfg: cfg, peer: p, model: newClient(cfg, http.DefaultTransport), sessions: map[string]*session{}}
	})
}

func parse(env []string) (config, error) {
	vars := map[string]string{}
	var shellEnv []string
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		vars[name] = value
		if name != "YARDMASTER_MODEL_TOKEN" {
			shellEnv = append(shellEnv, e)
		}
	}
	cfg := config{
		url: strings.TrimSuffix(vars["YARDMASTER_MODEL_URL"], "/"), token: vars["YARDMASTER_MODEL_TOKEN"],
		model: vars["YARDMASTER_MODEL"], report: vars["YARDMASTER_REPORT"], shellEnv: shellEnv,
	}
	if cfg.url == "" || cfg.model == "" {
		return cfg, fmt.Errorf("YARDMASTER_MODEL_URL and YARDMASTER_MODEL must be set")
	}
	api := vars["YARDMASTER_MODEL_API"]
	if api == "" {
		api = "chat"
	}
	var ok bool
	if cfg.wire, ok = wires[api]; !ok {
		return cfg, fmt.Errorf("YARDMASTER_MODEL_API is %q; it can be chat, messages or responses", api)
	}
	switch vars["YARDMASTER_PERMISSION"] {
	case "", "allow":
	case "ask":
		cfg.ask = true
	default:
		return cfg, fmt.Errorf("YARDMASTER_PERMISSION is %q; it can be allow or ask", vars["YARDMASTER_PERMISSION"])
	}
	var err error
	if cfg.maxRequests, err = count(vars, "YARDMASTER_MAX_REQUESTS", 200); err != nil {
		return cfg, err
	}
	cfg.contextTokens, err = count(vars, "YARDMASTER_CONTEXT_TOKENS", 128000)
	return cfg, err
}

func count(vars map[string]string, name string, otherwise int) (int, error) {
	v := vars[name]
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s is %q; it must be a positive number", name, v)
	}
	return n, nil
}

// agent implements acp.Agent.
type agent struct {
	cfg   config
	peer  *acp.Peer
	model *client

	mu       sync.Mutex
	sessions map[string]*session
}

// leastContext is the size of a context, in tokens, below which a provider's word is
// not believed.
const leastContext = 1000

// session is one conversation; acp.Serve runs one turn of it at a time.
type session struct {
	*agent
	id      string
	cwd     string
	root    *os.Root
	tools   []tool // the agent's own, and those of its MCP servers
	history []message
	calls   int // number of tool calls so far
	// contextTokens is the size of the model's context, as it was told or learned.
	contextTokens int
	live          func(text string) // receives the output of the running tool; nil: dropped
}

func (a *agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResult, error) {
	out := acp.InitializeResult{
		ProtocolVersion: acp.ProtocolVersion,
		AgentInfo:       &acp.Implementation{Name: "yardmaster", Title: "Yardmaster agent", Version: version.Own},
	}
	out.AgentCapabilities.MCP.HTTP, out.AgentCapabilities.MCP.SSE = true, true
	return out, nil
}

func (a *agent) NewSession(ctx context.Context, req acp.SessionRequest) (acp.Session, error) {
	if !filepath.IsAbs(req.Cwd) {
		return acp.Session{}, acp.Errorf(acp.CodeInvalidParams, "cwd must be an absolute path")
	}
	root, err := os.OpenRoot(req.Cwd)
	if err != nil {
		return acp.Session{}, acp.Errorf(acp.CodeInvalidParams, "open the working directory: %s", err)
	}
	s := &session{
		agent: a, id: rand.Text(), cwd: filepath.Clean(req.Cwd), root: root, tools: slices.Clone(tools), contextTokens: a.cfg.contextTokens,
	}
	for _, what := range s.attach(ctx, req.MCPServers) {
		s.say("The MCP server " + what + "\n")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions[s.id] = s
	return acp.Session{SessionID: s.id}, nil
}

func (a *agent) Prompt(ctx context.Context, req acp.PromptRequest) (acp.PromptResult, error) {
	a.mu.Lock()
	s := a.sessions[req.SessionID]
	a.mu.Unlock()
	if s == nil {
		return acp.PromptResult{}, acp.Errorf(acp.CodeNotFound, "there is no session %q", req.SessionID)
	}
	var text []string
	for _, b := range req.Prompt {
		if b.Type == "text" {
			text = append(text, b.Text)
		}
	}
	s.history = append(s.history, message{role: user, text: strings.Join(text, "\n")})
	stop, err := s.turn(ctx)
	if ctx.Err() != nil {
		return acp.PromptResult{StopReason: acp.StopCancelled}, nil
	}
	return acp.PromptResult{StopReason: stop}, err
}

// turn calls the model and runs its tools until it asks for none. However the turn
// ends, every tool call in the history has a result, so that models accept the
// history in the next turn.
func (s *session) turn(ctx context.Context) (string, error) {
	system := systemPrompt(s.cwd, s.cfg.report)
	for range s.cfg.maxRequests {
		trim(s.history, s.contextTokens)
		r, err := s.model.complete(ctx, system, s.tools, s.history, s.say)
		if limit, over := overflow(err); over && trimTo(s.history, 0) {
			if limit > leastContext { // the next results are cut in time
				s.contextTokens = int(min(int64(s.contextTokens), limit))
			}
			r, err = s.model.complete(ctx, system, s.tools, s.history, s.say)
		}
		if r.text != "" || len(r.calls) > 0 {
			s.history = append(s.history, message{role: assistant, text: r.text, calls: r.calls})
		}
		if err != nil {
			return "", err
		}
		if len(r.calls) == 0 {
			return r.stop, nil
		}
		var results []result
		for _, c := range r.calls {
			results = append(results, s.run(ctx, c))
		}
		s.history = append(s.history, message{role: user, results: results})
		if ctx.Err() != nil {
			return acp.StopCancelled, nil
		}
	}
	return acp.StopMaxRequests, nil
}

// say sends a piece of the model's text to the client.
func (s *session) say(text string) {
	_ = s.peer.Update(s.id, object{"sessionUpdate": acp.UpdateMessageChunk, "content": acp.Text(text)})
}

// run runs one tool call and reports it. Errors go to the model, which can try
// another way.
func (s *session) run(ctx context.Context, c call) result {
	if ctx.Err() != nil {
		return result{id: c.id, text: "cancelled by the user", failed: true}
	}
	s.calls++
	toolCall := object{
		"toolCallId": fmt.Sprintf("call_%d", s.calls), "title": c.name, "kind": "other",
		"status": acp.ToolInProgress, "rawInput": c.object(),
	}
	i := slices.IndexFunc(s.tools, func(t tool) bool { return t.name == c.name })
	var act action
	err := fmt.Errorf("there is no tool %q", c.name)
	if i >= 0 {
		toolCall["kind"] = s.tools[i].kind
		act, err = s.tools[i].parse(s, c.args)
	}
	if err == nil {
		toolCall["title"] = act.title
		if act.path != "" {
			toolCall["locations"] = []any{object{"path": filepath.Join(s.cwd, act.path)}}
		}
	}
	start := maps.Clone(toolCall)
	start["sessionUpdate"] = acp.UpdateToolCall
	_ = s.peer.Update(s.id, start)

	var out output
	if err == nil && s.cfg.ask && s.tools[i].risky {
		err = s.permitted(ctx, toolCall)
	}
	if err == nil {
		s.live = func(text string) {
			_ = s.peer.Update(s.id, object{
				"sessionUpdate": acp.UpdateToolCallUpdate, "toolCallId": toolCall["toolCallId"], "status": acp.ToolInProgress,
				"_meta": object{"terminal_output_delta": object{"terminal_id": toolCall["toolCallId"], "data": text}},
			})
		}
		out, err = act.do(ctx)
		s.live = nil
	}
	done := object{"sessionUpdate": acp.UpdateToolCallUpdate, "toolCallId": toolCall["toolCallId"], "status": acp.ToolCompleted}
	res := result{id: c.id, text: out.text}
	if res.text == "" {
		res.text = "[nothing]"
	}
	if err != nil {
		res.text, res.failed = strings.TrimSpace(out.text+"\n"+err.Error()), true
		done["status"] = acp.ToolFailed
	}
	content := out.content
	if content == nil || res.failed {
		content = textContent(res.text)
	}
	done["content"] = content
	_ = s.peer.Update(s.id, done)
	return res
}

func (s *session) permitted(ctx context.Context, toolCall any) error {
	raw, err := encode(toolCall)
	if err != nil {
		return err
	}
	answer, err := s.peer.RequestPermission(ctx, acp.PermissionRequest{SessionID: s.id, ToolCall: raw, Options: []acp.PermissionOption{
		{ID: "allow", Name: "Allow", Kind: acp.AllowOnce}, {ID: "reject", Name: "Reject", Kind: acp.RejectOnce},
	}})
	if err != nil {
		return fmt.Errorf("ask for permission: %w", err)
	}
	if answer.Outcome != "selected" || answer.OptionID != "allow" {
		return fmt.Errorf("the user did not allow this")
	}
	return nil
}

func systemPrompt(cwd, report string) string {
	p := `You are a software engineer at work in the git checkout at ` + cwd +
		`. Nobody is there to answer questions: decide, and carry the task through to the end.

` + `Look before you change: search and read what the task touches, and follow the conventions you find. ` +
		`Make the smallest change that does the whole task; leave unrelated code alone. ` +
		`Change files with the edit tool. Run the project's own build and tests for what you changed, ` +
		`and mend what fails because of you. Never claim a result you have not seen.

` + `Commit on the current branch or leave changes in the working tree; both are collected. ` +
		`Do not push, switch branches or rewrite history. ` +
		`Long-running servers belong in the background with their output in a file outside the checkout.

` + `When the task is done, or cannot be done, stop calling tools and close with a short report: ` +
		`what changed, how it was checked, what is left open.`
	if report != "" {
		p += " Before that, write the same report as Markdown to the file " + report +
			" (with the shell tool if it lies outside the checkout)."
	}
	return p
}
