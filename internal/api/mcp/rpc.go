package mcp

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// The error codes of JSON-RPC and of MCP.
const (
	parseError      = -32700
	invalidRequest  = -32600
	methodNotFound  = -32601
	invalidParams   = -32602
	headerMismatch  = -32020
	unknownRevision = -32022
)

// frame is a message from a client.
type frame struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  string         `json:"method"`
	Params  params         `json:"params"`
	Result  jsontext.Value `json:"result"`
	Error   jsontext.Value `json:"error"`
}

// params are the parameters of all methods together.
type params struct {
	ProtocolVersion string                    `json:"protocolVersion"`
	Name            string                    `json:"name"`
	Arguments       map[string]jsontext.Value `json:"arguments"`
	Meta            struct {
		ProtocolVersion jsontext.Value `json:"io.modelcontextprotocol/protocolVersion"`
	} `json:"_meta"`
}

type response struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Result  any            `json:"result,omitzero"`
	Error   *rpcError      `json:"error,omitzero"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitzero"`
	status  int
}

func failure(status, code int, message string) *rpcError {
	return &rpcError{Code: code, Message: message, status: status}
}

// null is the id in an answer to a message whose id could not be read.
func null() jsontext.Value { return jsontext.Value("null") }

// exchange is one message and its answer.
type exchange struct {
	*Server
	p    *op.Pipeline
	call *op.Call // the HTTP call that carries the message
	who  op.Caller
	ran  *op.Answer // answer of the tool that was called
}

// serve answers a call of the endpoint. The caller must have a credential; its
// rights are checked for each tool.
func (s *Server) serve(ctx context.Context, p *op.Pipeline, c *op.Call) op.Answer {
	c.Changes = false // a message counts as a read; a tool counts as its own op says
	observe.Of(ctx).Surface = "mcp"
	ctx, who, err := p.Admit(ctx, c)
	if err == nil {
		err = who.Check(c.Op.Rule)
	}
	if err != nil {
		return p.Refuse(c, err)
	}
	leave, err := p.HoldFor(ctx, c, &who)
	if err != nil {
		return p.Refuse(c, err)
	}
	defer leave()
	body, err := c.JSON()
	if err != nil {
		return p.Refuse(c, err)
	}
	x := &exchange{Server: s, p: p, call: c, who: who}
	r, err := x.rpc(ctx, body)
	if err != nil {
		return p.Refuse(c, err)
	}
	a := p.Reply(c, r)
	if t := x.ran; t != nil && a.Failure == nil {
		// The tool's limits apply, and the tool's error goes to the log.
		a.Limit, a.RetryAfter, a.Secret, a.Err = t.Limit, t.RetryAfter, t.Secret, t.Err
		t.Free()
	}
	return a
}

// rpc answers one message.
func (x *exchange) rpc(ctx context.Context, body []byte) (op.Reply, error) {
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '[' {
		return x.refused(null(), failure(400, invalidRequest,
			"Batches are not part of the protocol: send one message a request."))
	}
	f := frame{ID: null()}
	if err := json.Unmarshal(body, &f); err != nil {
		code, message := parseError, "The body is not valid JSON."
		if jsontext.Value(body).IsValid() {
			code, message = invalidRequest, "The body is not a JSON-RPC message."
		}
		return x.refused(null(), failure(400, code, message))
	}
	id := f.ID.Kind()
	switch {
	case f.JSONRPC != "2.0" || id != '"' && id != '0' && id != 'n':
		return x.refused(null(), failure(400, invalidRequest, "The body is not a JSON-RPC 2.0 message."))
	case f.Method == "" && (f.Result == nil && f.Error == nil):
		return x.refused(f.ID, failure(400, invalidRequest, "The message names no method."))
	case f.Method == "" || id == 'n':
		// A response or a notification needs no answer, and without state there is
		// nothing to do.
		return op.Reply{Status: 202, Body: ""}, x.charge()
	}
	if err := x.revision(&f); err != nil {
		return x.refused(f.ID, err)
	}
	if f.Method == "tools/call" {
		result, err := x.tool(ctx, &f)
		if err != nil {
			return x.refused(f.ID, err)
		}
		return reply(f.ID, result), nil // the tool was counted
	}
	if err := x.charge(); err != nil {
		return op.Reply{}, err
	}
	result, err := x.answer(&f)
	if err != nil {
		return unanswered(f.ID, err)
	}
	return reply(f.ID, result), nil
}

// charge counts a message that calls no tool as a read. It returns
// fault.RateLimited.
func (x *exchange) charge() error { return x.p.Charge(x.call, x.who) }

func reply(id jsontext.Value, result any) op.Reply {
	r := op.Reply{Status: 200, Body: response{JSONRPC: "2.0", ID: id, Result: result}}
	switch x := result.(type) {
	case listed:
		r.Body = x.splice(r.Body.(response))
	case called:
		r.Body = x.splice(r.Body.(response))
	}
	return r
}

// refused answers a message that is not carried out, and counts it as a read.
func (x *exchange) refused(id jsontext.Value, err *rpcError) (op.Reply, error) {
	if err := x.charge(); err != nil {
		return op.Reply{}, err
	}
	return unanswered(id, err)
}

// unanswered returns a JSON-RPC error. If the HTTP status is an error as well, one
// document is both: the problem document of all failures of the API, and the
// response that a client of the protocol reads.
func unanswered(id jsontext.Value, err *rpcError) (op.Reply, error) {
	if err.status < 400 {
		return op.Reply{Status: err.status, Body: response{JSONRPC: "2.0", ID: id, Error: err}}, nil
	}
	kind := fault.Internal
	for _, k := range fault.Kinds() {
		if k.Status() == err.status {
			kind = k
		}
	}
	return op.Reply{}, fault.New(kind, "", err.Message).With("jsonrpc", "2.0").With("id", id).With("error", err)
}

// splice encodes a list around its tools, which are long and already encoded.
func (l listed) splice(r response) any {
	const end = "null}}"
	r.Result = listed{l.settled, jsontext.Value("null")}
	frame, err := json.Marshal(r)
	frame, ok := bytes.CutSuffix(frame, []byte(end))
	if err != nil || !ok {
		r.Result = l
		return r
	}
	return slices.Concat(frame, []byte(l.Tools), []byte(end[len("null"):]))
}

// splice writes the result of a tool around what it answered, which is encoded already. What is
// rare is left to the encoder: an answer of which nothing is shown, as {}, and an id with escapes.
func (c called) splice(r response) any {
	if !c.encoded || len(c.Structured) <= len("null") || c.Meta != nil || bytes.IndexByte(r.ID, '\\') >= 0 {
		r.Result = c
		return r
	}
	b := slices.Grow([]byte(nil), len(r.ID)+9*len(c.Structured)/4+160)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), r.ID...)
	b = append(b, `,"result":{`...)
	if c.ResultType != "" {
		b = append(append(append(b, `"resultType":"`...), c.ResultType...), `",`...)
	}
	b = append(b, `"content":[{"type":"text","text":`...)
	b, err := jsontext.AppendQuote(b, c.Content[0].Text)
	if err != nil {
		r.Result = c
		return r
	}
	b = append(append(b, `}],"structuredContent":`...), c.Structured...)
	b = append(b, `,"isError":`...)
	return append(strconv.AppendBool(b, c.IsError), "}}"...)
}

// revision checks that header and message name the same known revision. Before the
// modern revision there was only the header, and in the first revision not even
// that.
func (x *exchange) revision(f *frame) *rpcError {
	header := x.call.Header("Mcp-Protocol-Version")
	if header != "" && !slices.Contains(revisions, header) {
		err := failure(400, unknownRevision, "This revision of the protocol is not supported.")
		err.Data = map[string]any{"supported": revisions, "requested": strings.ToValidUTF8(header, "\uFFFD")}
		return err
	}
	var meta string
	if v := f.Params.Meta.ProtocolVersion; v != nil && json.Unmarshal(v, &meta) != nil {
		return failure(400, invalidParams, "The protocol version in _meta must be a string.")
	}
	switch {
	case header != modern && meta == "":
		return nil
	case meta == "":
		return failure(400, invalidParams, "The message lacks the protocol version in _meta.")
	case meta != header:
		return failure(400, headerMismatch, "The header Mcp-Protocol-Version does not match the version in _meta.")
	case header == modern && x.call.Header("Mcp-Method") != f.Method:
		return failure(400, headerMismatch, "The header Mcp-Method does not match the method.")
	case header == modern && f.Method == "tools/call" && x.call.Header("Mcp-Name") != f.Params.Name:
		return failure(400, headerMismatch, "The header Mcp-Name does not match the name.")
	}
	return nil
}

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type capabilities struct {
	Tools struct{} `json:"tools"`
}

type initialized struct {
	ProtocolVersion string         `json:"protocolVersion"`
	Capabilities    capabilities   `json:"capabilities"`
	ServerInfo      implementation `json:"serverInfo"`
	Instructions    string         `json:"instructions"`
}

// settled holds the members that the modern revision adds to results: that the
// result is complete, and how long and by whom it may be cached.
type settled struct {
	ResultType string         `json:"resultType,omitempty"`
	TTL        int            `json:"ttlMs,omitzero"`
	Scope      string         `json:"cacheScope,omitempty"`
	Meta       map[string]any `json:"_meta,omitempty"`
}

type discovered struct {
	settled
	SupportedVersions []string     `json:"supportedVersions"`
	Capabilities      capabilities `json:"capabilities"`
	Instructions      string       `json:"instructions"`
}

type listed struct {
	settled
	Tools jsontext.Value `json:"tools"`
}

// keep is how long a list may be cached, in milliseconds. Credentials change
// rarely, and a call with a lost right is refused.
const keep = 60_000

func (x *exchange) answer(f *frame) (any, *rpcError) {
	var extra settled
	now := x.call.Header("Mcp-Protocol-Version") == modern
	if now {
		extra = settled{ResultType: "complete", TTL: keep, Scope: "private"}
	}
	self := implementation{"yardmaster", "Yardmaster", x.Version}
	switch f.Method {
	case "initialize":
		v := f.Params.ProtocolVersion
		if !slices.Contains(revisions, v) || v == modern { // the modern revision has no initialize
			v = revisions[1]
		}
		return initialized{v, capabilities{}, self, instructions}, nil
	case "server/discover":
		extra.Meta = map[string]any{"io.modelcontextprotocol/serverInfo": self}
		return discovered{extra, revisions, capabilities{}, instructions}, nil
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		tools, err := x.list(x.who.Actor.Scopes)
		if err != nil {
			return nil, failure(500, -32603, "The list could not be made.")
		}
		return listed{extra, tools}, nil
	}
	status := 200
	if now {
		status = 404
	}
	return nil, failure(status, methodNotFound, "There is no such method.")
}
