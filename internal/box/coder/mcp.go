package coder

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"yardmaster/internal/box/acp"
	"yardmaster/internal/lazy"
)

const (
	serverLimit  = 20 * time.Second // for a server to connect and to list its tools
	serverCall   = 10 * time.Minute // for one call of a tool
	toolsOffered = 100              // by all servers together
)

// toolName matches the names that every provider's API accepts.
var toolName = lazy.New(`^[A-Za-z0-9_-]{1,64}$`)

// attach connects the session to its servers and adds their tools, each named
// mcp__<server>__<tool>. It returns an error text for each server that could not be
// used; the session goes on without it.
func (s *session) attach(ctx context.Context, servers []acp.MCPServer) (missing []string) {
	for _, server := range servers {
		if err := s.attachOne(ctx, server); err != nil {
			missing = append(missing, server.Name+": "+err.Error())
		}
	}
	return missing
}

func (s *session) attachOne(ctx context.Context, server acp.MCPServer) error {
	ctx, hangUp := context.WithCancel(ctx) // the connection of an SSE server lives as long as this context
	defer time.AfterFunc(serverLimit, hangUp).Stop()
	client := &http.Client{Transport: withHeaders(server.Headers)}
	var transport mcp.Transport
	switch server.Type {
	case acp.TransportHTTP:
		transport = &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, DisableStandaloneSSE: true}
	case acp.TransportSSE:
		transport = &mcp.SSEClientTransport{Endpoint: server.URL, HTTPClient: client}
	default:
		return errors.New("this agent starts no servers of its own")
	}
	peer, err := mcp.NewClient(&mcp.Implementation{Name: "yardmaster", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		hangUp()
		return err
	}
	for t, err := range peer.Tools(ctx, nil) {
		if err != nil {
			hangUp()
			return err
		}
		name := "mcp__" + server.Name + "__" + t.Name
		parameters, ok := t.InputSchema.(map[string]any)
		if !ok || !toolName.MatchString(name) || len(s.tools) >= len(tools)+toolsOffered {
			continue
		}
		s.tools = append(s.tools, tool{
			name: name, kind: "other", description: t.Description, schema: parameters,
			risky: t.Annotations == nil || !t.Annotations.ReadOnlyHint,
			parse: func(_ *session, raw json.RawMessage) (action, error) {
				args := map[string]any{}
				if err := decodeArgs(raw, &args); err != nil {
					return action{}, err
				}
				return action{title: server.Name + ": " + t.Name, do: func(ctx context.Context) (output, error) {
					return callTool(ctx, peer, t.Name, args)
				}}, nil
			},
		})
	}
	return nil
}

func callTool(ctx context.Context, peer *mcp.ClientSession, name string, args map[string]any) (output, error) {
	ctx, cancel := context.WithTimeout(ctx, serverCall)
	defer cancel()
	res, err := peer.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return output{}, err
	}
	var parts []string
	for _, c := range res.Content {
		text, ok := c.(*mcp.TextContent)
		if !ok {
			raw, err := json.Marshal(c)
			if err != nil {
				return output{}, err
			}
			text = &mcp.TextContent{Text: string(raw)}
		}
		parts = append(parts, text.Text)
	}
	text := strings.Join(parts, "\n")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "\n[the rest is left out]"
	}
	if res.IsError {
		return output{}, errors.New(text)
	}
	return output{text: text}, nil
}

// withHeaders sets headers on every request.
func withHeaders(set []acp.HTTPHeader) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		for _, h := range set {
			r.Header.Set(h.Name, h.Value)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
