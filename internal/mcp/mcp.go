// Package mcp serves the capabilities to programs that speak the Model Context
// Protocol: one JSON-RPC request in one POST, one answer, and nothing kept in
// between. A tool is an op under its own id, so a call meets the same rule,
// the same checks and the same answer as over REST; this package only wraps
// and unwraps.
package mcp

import (
	"context"
	"strings"
	"sync"

	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

// The protocol's revisions. The modern one has no handshake and says its
// version in every request; the ones before are negotiated by initialize.
const modern = "2026-07-28"

var revisions = []string{modern, "2025-11-25", "2025-06-18"}

// Path is the endpoint, Resource what describes it to clients without a token.
const (
	Path     = "/v1/mcp"
	Resource = "/.well-known/oauth-protected-resource/v1/mcp"
)

const group = "MCP"

const instructions = "Tools are the capabilities of a Yardmaster, a control plane for AI developer agents. " +
	"Each asserts its scope. Lists are paged: send next_cursor back as cursor. " +
	"A failure is a problem document; switch on the last segment of its type."

// Server offers ops as tools.
type Server struct {
	Version string
	ops     []op.Op
	names   map[string]*op.Op // as listed, and with _ for the dot

	once  sync.Once // makes the descriptions, at the first list
	tools []tool
	mu    sync.Mutex
	lists map[policy.Set][]byte // what a scope set may see, rendered
}

// New makes a server of those of the ops that can be tools.
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
	}
	return s
}

// Ops are the two rows of the endpoint.
func (s *Server) Ops() []op.Op {
	return []op.Op{
		op.Raw(op.Row{ID: "mcp.rpc", From: op.KnownPages, Method: "POST", Path: Path, Group: group, Rule: policy.PerRequest(), Also: []int{202}, MaxBody: 2 << 20,
			Inside: true, Resource: Resource, Refuses: []op.Refusal{{Status: 403, Slug: "cross-origin"}, {Status: 404, Slug: "not-found"}},
			Summary: "One JSON-RPC request of the Model Context Protocol; every verb asserts its own scope"}, s.rpc),
		op.New(op.Row{ID: "mcp.stream_refused", From: op.KnownPages, Method: "GET", Path: Path, Group: group, Rule: policy.PerRequest(), Status: 405, Resource: Resource,
			Refuses: []op.Refusal{{Status: 403, Slug: "cross-origin"}, {Status: 405, Slug: "method-not-allowed"}},
			Summary: "Refused: the server sends nothing on its own"}, refuse),
	}
}

func refuse(context.Context, op.None) (op.None, error) {
	return op.None{}, fault.New(fault.MethodNotAllowed, "", "There is no stream from server to client; send requests with POST.")
}
