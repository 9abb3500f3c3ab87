// Package mcp serves the capabilities to programs that use the Model Context
// Protocol: one JSON-RPC request in one POST, one answer, and no state in between.
// It is the handler of the row mcp.rpc and calls the same pipeline as REST. A tool
// is an op under its own id, so a call meets the same rules and checks and gets the
// same answer as over REST; this package only converts the messages.
package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// The protocol's revisions. The modern one has no handshake and names its version
// in every request; in earlier ones initialize negotiates it.
const modern = "2026-07-28"

var revisions = []string{modern, "2025-11-25", "2025-06-18"}

// Path is the endpoint; Resource is the document that describes it to clients
// without a token.
const (
	Path     = "/v1/mcp"
	Resource = "/.well-known/oauth-protected-resource/v1/mcp"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

// bare lists verbs that clients may also call without their group, as the contract
// says. They are accepted and not listed.
var bare = []string{"next_steps", "source_connect"}

var instructions = "Tools are the capabilities of a Yardmaster, a control plane for AI developer agents. " +
	"Each asserts its scope. Lists are paged: send next_cursor back as cursor. " +
	fmt.Sprintf("Writes take %s, the name of a conversation, which may make %d a minute. ", Conversation, op.WritesPerConversation) +
	"A failure is a problem document; switch on the last segment of its type. " +
	"GET /v1/openapi.json says more of each."

// Server offers ops as tools.
type Server struct {
	Version string
	ops     []op.Op
	names   map[string]*op.Op // by id, by id with _ for the dot, and by bare verb

	once  sync.Once // makes the descriptions for the first list
	tools []tool
	mu    sync.Mutex
	lists map[policy.Set][]byte // the encoded list for each scope set
}

// New returns a server for those of the ops that can be tools.
func New(version string, ops []op.Op) *Server {
	s := &Server{Version: version, names: map[string]*op.Op{}, lists: map[policy.Set][]byte{}}
	for _, o := range ops {
		if o.IsTool() {
			s.ops = append(s.ops, o)
		}
	}
	for i := range s.ops {
		o := &s.ops[i]
		s.names[o.ID], s.names[strings.ReplaceAll(o.ID, ".", "_")] = o, o
		if _, verb, _ := strings.Cut(o.ID, "."); slices.Contains(bare, verb) {
			s.names[verb] = o
		}
	}
	return s
}

// Ops returns the two rows of the endpoint.
func (s *Server) Ops() []op.Op {
	return []op.Op{
		op.Raw(op.Row{
			ID: "mcp.rpc", From: op.KnownPages, Method: "POST", Path: Path, Slash: true, Group: group, Rule: policy.PerRequest(),
			Also: []int{202}, MaxBody: 2 << 20, Resource: Resource, Takes: Message{}, Body: Answer{},
			Refuses: []op.Refusal{{Status: 403, Slug: "cross-origin"}, {Status: 404, Slug: "not-found"}},
			Summary: "One JSON-RPC request of the Model Context Protocol; every verb asserts its own scope",
			Doc: "One request in the body, one answer; no sessions, no batches. " +
				"tools/list names the capabilities that the credential may call, " +
				"each under its id; tools/call runs one with the same checks, limits and answer as its route here. " +
				"A notification is answered 202 without a body.",
		}, s.serve),
		op.New(op.Row{
			ID: "mcp.stream_refused", From: op.KnownPages, Method: "GET", Path: Path, Slash: true, Group: group, Rule: policy.PerRequest(),
			Status: 405, Resource: Resource,
			Refuses: []op.Refusal{{Status: 403, Slug: "cross-origin"}, {Status: 405, Slug: "method-not-allowed"}},
			Summary: "Refused: the server sends nothing on its own",
			Doc:     "Always 405: requests go by POST.",
		}, refuse),
	}
}

// Message and Answer describe the protocol's messages in the OpenAPI document. Each
// method has params and a result of its own.
type (
	Message struct {
		_       struct{}       `doc:"A request of JSON-RPC 2.0, or a notification, which has no id." schema:"Message"`
		JSONRPC string         `json:"jsonrpc" enum:"2.0" doc:"the version of JSON-RPC"`
		ID      any            `json:"id,omitzero" doc:"a string or a number; the answer carries it" example:"1"`
		Method  string         `json:"method,omitempty" doc:"tools/list, tools/call, initialize, server/discover or ping" example:"tools/call"`
		Params  map[string]any `json:"params,omitzero" doc:"what the method takes; of tools/call the name of a capability and its arguments" example:"{\"name\": \"task.list\", \"arguments\": {\"per_page\": 5}}"`
		Extra   map[string]any `json:",embed"`
	}
	Answer struct {
		_       struct{}       `doc:"A response of JSON-RPC 2.0: a result, or an error." schema:"Answer"`
		JSONRPC string         `json:"jsonrpc" enum:"2.0" doc:"the version of JSON-RPC"`
		ID      any            `json:"id" doc:"of the request" example:"1"`
		Result  map[string]any `json:"result,omitzero" doc:"what the method answers; a tool's is in structuredContent, with isError where it is a problem" example:"{\"content\": [], \"structuredContent\": {\"data\": [], \"next_cursor\": null}, \"isError\": false}"`
		Error   *RPCError      `json:"error,omitzero" doc:"why there is no result"`
	}
	RPCError struct {
		_       struct{} `doc:"An error of JSON-RPC." schema:"RPCError"`
		Code    int      `json:"code" doc:"of JSON-RPC or of the protocol" example:"-32602"`
		Message string   `json:"message" doc:"for people" example:"There is no tool of that name."`
		Data    any      `json:"data,omitzero" doc:"more, where there is"`
	}
)

func refuse(context.Context, op.None) (op.None, error) {
	return op.None{}, fault.New(fault.MethodNotAllowed, "", "There is no stream from server to client; send requests with POST.")
}
