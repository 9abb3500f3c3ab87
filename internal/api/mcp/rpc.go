package mcp

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
)

// Error codes of JSON-RPC, and those that MCP adds.
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

// params are those of all methods.
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

// null is the id of an answer to what has none that we could read.
func null() jsontext.Value { return jsontext.Value("null") }

// rpc answers one message.
func (s *Server) rpc(ctx context.Context, body []byte) (op.Reply, error) {
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '[' {
		return refused(ctx, null(), failure(http.StatusBadRequest, invalidRequest, "Batches are not part of the protocol: send one message a request."))
	}
	f := frame{ID: null()}
	if err := json.Unmarshal(body, &f); err != nil {
		code, message := parseError, "The body is not valid JSON."
		if jsontext.Value(body).IsValid() {
			code, message = invalidRequest, "The body is not a JSON-RPC message."
		}
		return refused(ctx, null(), failure(http.StatusBadRequest, code, message))
	}
	id := f.ID.Kind()
	switch {
	case f.JSONRPC != "2.0" || id != '"' && id != '0' && id != 'n':
		return refused(ctx, null(), failure(http.StatusBadRequest, invalidRequest, "The body is not a JSON-RPC 2.0 message."))
	case f.Method == "" && (f.Result == nil && f.Error == nil):
		return refused(ctx, f.ID, failure(http.StatusBadRequest, invalidRequest, "The message names no method."))
	case f.Method == "" || id == 'n':
		// A response, or a notification: there is nothing to answer, and as we
		// keep nothing, nothing to do.
		return op.Reply{Status: http.StatusAccepted, Body: ""}, charge(ctx)
	}
	if err := revision(ctx, &f); err != nil {
		return refused(ctx, f.ID, err)
	}
	if f.Method == "tools/call" {
		result, err := s.call(ctx, &f)
		if err != nil {
			return refused(ctx, f.ID, err)
		}
		return reply(f.ID, result), nil // the tool was charged
	}
	if err := charge(ctx); err != nil {
		return op.Reply{}, err
	}
	result, err := s.answer(ctx, &f)
	if err != nil {
		return unanswered(f.ID, err)
	}
	return reply(f.ID, result), nil
}

// charge counts what is no tool as a read.
func charge(ctx context.Context) error { return op.Charge(ctx) }

func reply(id jsontext.Value, result any) op.Reply {
	r := op.Reply{Status: http.StatusOK, Body: response{JSONRPC: "2.0", ID: id, Result: result}}
	if l, ok := result.(listed); ok {
		r.Body = l.splice(r.Body.(response))
	}
	return r
}

// refused answers what is not carried out, and counts it as a read.
func refused(ctx context.Context, id jsontext.Value, err *rpcError) (op.Reply, error) {
	if err := charge(ctx); err != nil {
		return op.Reply{}, err
	}
	return unanswered(id, err)
}

// unanswered is an error of JSON-RPC. Where HTTP fails as well, the one
// document is both: the problem that every failure of the API is, and the
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

// splice encodes a list around its tools, which are long and encoded already.
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

// revision checks that header and message name the same revision, and one we
// know. Before the modern one there was only the header, and at first not that.
func revision(ctx context.Context, f *frame) *rpcError {
	header := op.Header(ctx, "Mcp-Protocol-Version")
	if header != "" && !slices.Contains(revisions, header) {
		err := failure(http.StatusBadRequest, unknownRevision, "This revision of the protocol is not supported.")
		err.Data = map[string]any{"supported": revisions, "requested": strings.ToValidUTF8(header, "\uFFFD")}
		return err
	}
	var meta string
	if v := f.Params.Meta.ProtocolVersion; v != nil && json.Unmarshal(v, &meta) != nil {
		return failure(http.StatusBadRequest, invalidParams, "The protocol version in _meta must be a string.")
	}
	switch {
	case header != modern && meta == "":
		return nil
	case meta == "":
		return failure(http.StatusBadRequest, invalidParams, "The message lacks the protocol version in _meta.")
	case meta != header:
		return failure(http.StatusBadRequest, headerMismatch, "The header Mcp-Protocol-Version does not match the version in _meta.")
	case header == modern && op.Header(ctx, "Mcp-Method") != f.Method:
		return failure(http.StatusBadRequest, headerMismatch, "The header Mcp-Method does not match the method.")
	case header == modern && f.Method == "tools/call" && op.Header(ctx, "Mcp-Name") != f.Params.Name:
		return failure(http.StatusBadRequest, headerMismatch, "The header Mcp-Name does not match the name.")
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

// settled is what the modern revision adds to results: that it is the whole
// one, and how long it may be kept, by whom.
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

// keep is how long a list may be kept: credentials change seldom, and what they
// lose is refused at the call.
const keep = 60_000

func (s *Server) answer(ctx context.Context, f *frame) (any, *rpcError) {
	var extra settled
	now := op.Header(ctx, "Mcp-Protocol-Version") == modern
	if now {
		extra = settled{ResultType: "complete", TTL: keep, Scope: "private"}
	}
	self := implementation{"yardmaster", "Yardmaster", s.Version}
	switch f.Method {
	case "initialize":
		v := f.Params.ProtocolVersion
		if !slices.Contains(revisions, v) || v == modern { // which has no initialize
			v = revisions[1]
		}
		return initialized{v, capabilities{}, self, instructions}, nil
	case "server/discover":
		extra.Meta = map[string]any{"io.modelcontextprotocol/serverInfo": self}
		return discovered{extra, revisions, capabilities{}, instructions}, nil
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		tools, err := s.list(ctx)
		if err != nil {
			return nil, failure(http.StatusInternalServerError, -32603, "The list could not be made.")
		}
		return listed{extra, tools}, nil
	}
	status := http.StatusOK
	if now {
		status = http.StatusNotFound
	}
	return nil, failure(status, methodNotFound, "There is no such method.")
}
