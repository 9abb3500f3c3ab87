package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/mcp"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

type thing struct {
	Owner string   `json:"owner" doc:"whose it is by now"`
	Name  string   `json:"name"`
	Tags  []string `json:"tags"`
	Deep  bool     `json:"deep"`
}

type getIn struct {
	Owner string   `json:"owner" doc:"whose it is"`
	Tags  []string `json:"tags,omitempty"`
	Deep  bool     `json:"deep,omitempty"`
	Count int      `json:"count,omitempty" minimum:"1" maximum:"9"`
}

type putIn struct {
	Owner string `json:"owner"`
	Name  string `json:"name" minLength:"1" maxLength:"5"`
}

// serve runs things until the test ends.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	s := httptest.NewServer(things(limit.New(func() time.Time { return now })))
	t.Cleanup(s.Close)
	return s
}

// things is the endpoint beside the routes of a few ops. The bearer is the list
// of its scopes.
func things(limits limit.Limiter) http.Handler {
	get := func(_ context.Context, in getIn) (thing, error) {
		if in.Owner == "nobody" {
			return thing{}, fault.Missing("thing")
		}
		return thing{in.Owner, "x", in.Tags, in.Deep}, nil
	}
	put := func(_ context.Context, in putIn) (thing, error) {
		if in.Name == "taken" {
			return thing{}, fault.Reason("name-taken", "Taken.").With("by", "x")
		}
		return thing{in.Owner, in.Name, nil, false}, nil
	}
	ops := []op.Op{
		op.New(op.Row{ID: "thing.get", Method: "GET", Path: "/v1/{owner}/thing", Rule: policy.Require(policy.ReadTasks), Group: "Things",
			Summary: "One"}, get),
		op.New(op.Row{ID: "thing.set_name", Method: "PUT", Path: "/v1/{owner}/thing", Rule: policy.Require(policy.WriteTasks),
			Group: "Things", Summary: "Name"}, put),
		op.New(op.Row{ID: "thing.delete", Method: "DELETE", Path: "/v1/{owner}/thing", Rule: policy.Require(policy.WriteRepos),
			Group: "Things", Summary: "Gone"}, get),
		op.New(op.Row{ID: "thing.free", Method: "GET", Path: "/v1/free", Rule: policy.Public(), Group: "Things", Summary: "Free"},
			func(context.Context, op.None) (op.None, error) { return op.None{}, nil }),
	}
	return rest.Handler(rest.Config{Pipeline: &op.Pipeline{
		BaseURL: "http://yard", Limits: limits,
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			token := p.Bearer
			if token == "" {
				return policy.Actor{}, nil
			}
			scopes, unknown := policy.ParseScopes(strings.Split(token, ","))
			if unknown != nil {
				return policy.Actor{}, policy.Unauthenticated()
			}
			return policy.Actor{Credential: policy.PAT, CredentialID: token, AccountID: "acme", Scopes: scopes}, nil
		},
	}}, append(ops, mcp.New("test", ops).Ops()...))
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

const both = "read:tasks,write:tasks"

// connect is the official client, at a revision.
func connect(t *testing.T, s *httptest.Server, scopes, revision string) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.URL + mcp.Path,
		HTTPClient: &http.Client{Transport: bearer(scopes)}, MaxRetries: -1},
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func TestOfficialClient(t *testing.T) {
	s := serve(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(revision, func(t *testing.T) {
			c := connect(t, s, both, revision)
			if got := c.InitializeResult().ProtocolVersion; got != revision {
				t.Fatalf("they agree on %s", got)
			}
			list, err := c.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			if !slices.Equal(names, []string{"thing.get", "thing.set_name"}) {
				t.Fatalf("tools %v", names)
			}
			if a := list.Tools[0].Annotations; !a.ReadOnlyHint {
				t.Errorf("thing.get is %+v", a)
			}
			for _, name := range []string{"thing.get", "thing_get"} {
				r, err := c.CallTool(t.Context(),
					&sdk.CallToolParams{Name: name, Arguments: map[string]any{"owner": "o/o", "tags": []string{"a", "b"}, "deep": true}})
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]any{"owner": "o/o", "name": "x", "tags": []any{"a", "b"}, "deep": true}
				if r.IsError || !reflect.DeepEqual(r.StructuredContent, want) {
					t.Errorf("%s answers %v", name, r.StructuredContent)
				}
			}
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "thing.set_name",
				Arguments: map[string]any{"owner": "o", "name": "abc", "conversation_ref": "c"}})
			if err != nil || r.IsError {
				t.Fatalf("%v %+v", err, r)
			}
			if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "thing.fly"}); err == nil ||
				!strings.Contains(err.Error(), "no tool") {
				t.Errorf("an unknown tool: %v", err)
			}
			if err := c.Ping(t.Context(), nil); err != nil && revision != "2026-07-28" {
				t.Error(err)
			}
		})
	}
}

// TestSameProblem holds that a refusal is the problem that REST answers, except for
// the request's id.
func TestSameProblem(t *testing.T) {
	s := serve(t)
	for name, c := range map[string]struct {
		tool, scopes       string
		args               map[string]any
		method, path, body string
		status             float64
	}{
		"scope":    {"thing.delete", both, map[string]any{"owner": "o"}, "DELETE", "/v1/o/thing", "", 403},
		"missing":  {"thing.get", both, map[string]any{"owner": "nobody"}, "GET", "/v1/nobody/thing", "", 404},
		"too much": {"thing.get", both, map[string]any{"owner": "o", "count": 10}, "GET", "/v1/o/thing?count=10", "", 400},
		"no input": {"thing.get", both, map[string]any{"owner": "o", "x": "y"}, "GET", "/v1/o/thing?x=y", "", 400},
		"no field": {"thing.set_name", both, map[string]any{"owner": "o", "name": "a", "x": 1}, "PUT", "/v1/o/thing",
			`{"name": "a", "x": 1}`,
			400},
		"required": {"thing.set_name", both, map[string]any{"owner": "o"}, "PUT", "/v1/o/thing", `{}`, 400},
		"type":     {"thing.set_name", both, map[string]any{"owner": "o", "name": 1}, "PUT", "/v1/o/thing", `{"name": 1}`, 400},
		"state":    {"thing.set_name", both, map[string]any{"owner": "o", "name": "taken"}, "PUT", "/v1/o/thing", `{"name": "taken"}`, 409},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := connect(t, s, c.scopes, "2026-07-28").CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: c.args})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := r.StructuredContent.(map[string]any)
			_, body := post(t, s, c.method, c.path, c.scopes, c.body)
			delete(got, "request_id")
			delete(body, "request_id")
			if !r.IsError || got["status"] != c.status || !reflect.DeepEqual(got, body) {
				t.Errorf("over MCP %v\nover REST %v", got, body)
			}
		})
	}
}

// post sends a request and reads the JSON it is answered.
func post(t *testing.T, s *httptest.Server, method, path, scopes, body string, header ...string) (*http.Response, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if scopes != "" {
		req.Header.Set("Authorization", "Bearer "+scopes)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if len(b) > 0 && json.Unmarshal(b, &m) != nil {
		t.Fatalf("%s %s answers %s", method, path, b)
	}
	return resp, m
}

// TestListing holds that a list describes arguments in words and answers not at all, that
// a conversation is named where it counts, and what it says of a tool's effects.
func TestListing(t *testing.T) {
	s := serve(t)
	for range 2 {
		_, m := post(t, s, "POST", mcp.Path, both+",write:repos", `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`)
		got := map[string]string{}
		for _, listed := range m["result"].(map[string]any)["tools"].([]any) {
			tool := listed.(map[string]any)
			in, err := json.Marshal(tool["inputSchema"])
			effects, err2 := json.Marshal(tool["annotations"])
			name := tool["name"].(string)
			got[name] = string(effects)
			if talks := strings.Contains(string(in), "conversation_ref"); err != nil || err2 != nil || tool["outputSchema"] != nil ||
				talks != (name == "thing.set_name" || name == "thing.delete") ||
				name == "thing.get" && !strings.Contains(string(in), "whose it is") {
				t.Errorf("%s: %v", name, tool)
			}
		}
		want := map[string]string{
			"thing.get":      `{"openWorldHint":false,"readOnlyHint":true}`,
			"thing.set_name": `{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`,
			"thing.delete":   `{"idempotentHint":true,"openWorldHint":false}`,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("they are %v", got)
		}
	}
}

func TestFrames(t *testing.T) {
	s := serve(t)
	v := func(version string) []string { return []string{"Mcp-Protocol-Version", version} }
	meta := `"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}`
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		code   float64 // 0: a result, or nothing at 202
	}{
		"ping":                  {`{"jsonrpc": "2.0", "id": 1, "method": "ping"}`, nil, 200, 0},
		"string id":             {`{"jsonrpc": "2.0", "id": "a", "method": "ping"}`, v("2025-11-25"), 200, 0},
		"notification":          {`{"jsonrpc": "2.0", "method": "notifications/initialized"}`, nil, 202, 0},
		"unknown notification":  {`{"jsonrpc": "2.0", "method": "notifications/x", "params": {"y": 1}}`, nil, 202, 0},
		"response":              {`{"jsonrpc": "2.0", "id": 1, "result": {}}`, nil, 202, 0},
		"batch":                 {`[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]`, nil, 400, -32600},
		"no JSON":               {`{"jsonrpc"`, nil, 400, -32700},
		"a name twice":          {`{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}`, nil, 400, -32700},
		"a number":              {`1`, nil, 400, -32600},
		"no version":            {`{"id": 1, "method": "ping"}`, nil, 400, -32600},
		"an id of another kind": {`{"jsonrpc": "2.0", "id": {}, "method": "ping"}`, nil, 400, -32600},
		"nothing":               {`{"jsonrpc": "2.0", "id": 1}`, nil, 400, -32600},
		"unknown method":        {`{"jsonrpc": "2.0", "id": 1, "method": "x"}`, v("2025-11-25"), 200, -32601},
		"unknown tool":          {`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}`, nil, 200, -32602},
		"unknown revision":      {`{"jsonrpc": "2.0", "id": 1, "method": "ping"}`, v("1999-01-01"), 400, -32022},
		"modern without meta":   {`{"jsonrpc": "2.0", "id": 1, "method": "ping"}`, v("2026-07-28"), 400, -32602},
		"meta without header":   {`{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {` + meta + `}}`, nil, 400, -32020},
		"another method": {`{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {` + meta + `}}`,
			append(v("2026-07-28"), "Mcp-Method", "x"), 400, -32020},
		"modern": {`{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {` + meta + `}}`,
			append(v("2026-07-28"), "Mcp-Method", "ping"), 200, 0},
		"modern, unknown": {`{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {` + meta + `}}`,
			append(v("2026-07-28"), "Mcp-Method", "x"), 404, -32601},
	} {
		resp, m := post(t, s, "POST", mcp.Path, both, c.body, c.header...)
		var code float64
		if e, ok := m["error"].(map[string]any); ok {
			code, _ = e["code"].(float64)
		}
		if resp.StatusCode != c.status || code != c.code || c.status == 200 && c.code == 0 && m["result"] == nil ||
			c.status == 202 && m != nil {
			t.Errorf("%s: %d %v", name, resp.StatusCode, m)
		}
	}
}

func TestEndpoint(t *testing.T) {
	s := serve(t)
	ping := `{"jsonrpc": "2.0", "id": 1, "method": "ping"}`
	for _, method := range []string{"POST", "GET"} {
		for at, token := range map[string]string{mcp.Path: "", mcp.Path + "/": "bad"} {
			resp, m := post(t, s, method, at, token, ping)
			if want := `Bearer resource_metadata="http://yard/.well-known/oauth-protected-resource/v1/mcp"`; resp.StatusCode != 401 ||
				resp.Header.Get("WWW-Authenticate") != want || m["status"] != 401.0 {
				t.Errorf("%s with %q: %d %v %v", method, token, resp.StatusCode, resp.Header, m)
			}
		}
	}
	if resp, m := post(t, s, "GET", mcp.Path, both, ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" ||
		m["status"] != 405.0 {
		t.Errorf("GET: %d %v %v", resp.StatusCode, resp.Header, m)
	}
	if resp, _ := post(t, s, "DELETE", mcp.Path+"/", both, ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
		t.Errorf("DELETE: %d, allowed is %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	if resp, m := post(t, s, "POST", mcp.Path+"/", both, ping); resp.StatusCode != 200 || m["result"] == nil {
		t.Errorf("with a slash at the end: %d %v", resp.StatusCode, m)
	}
	for _, at := range []string{mcp.Path + "//", mcp.Path + "/x", "/v1//mcp/"} {
		if resp, _ := post(t, s, "POST", at, both, ping); resp.StatusCode != 404 {
			t.Errorf("%s: %d", at, resp.StatusCode)
		}
	}
	if resp, _ := post(t, s, "POST", mcp.Path, both, ping, "Content-Type", "text/plain"); resp.StatusCode != 415 {
		t.Errorf("text: %d", resp.StatusCode)
	}
}

// TestLimits holds that a call counts as its verb says, and a write for its
// conversation.
func TestLimits(t *testing.T) {
	s := serve(t)
	call := func(tool, talk string) (*http.Response, map[string]any) {
		t.Helper()
		resp, m := post(t, s, "POST", mcp.Path, both,
			`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "`+tool+`", "arguments": {"owner": "o", `+
				`"conversation_ref": "`+talk+`"}}}`)
		result, _ := m["result"].(map[string]any)
		problem, _ := result["structuredContent"].(map[string]any)
		return resp, problem
	}
	shows := func(resp *http.Response) string {
		return resp.Header.Get("RateLimit-Limit") + "/" + resp.Header.Get("RateLimit-Remaining")
	}
	if resp, _ := call("thing.get", ""); shows(resp) != "600/599" {
		t.Errorf("a read shows %s", shows(resp))
	}
	for range 120 {
		call("thing.set_name", "a")
	}
	resp, problem := call("thing.set_name", "a")
	if shows(resp) != "120/0" || resp.Header.Get("Retry-After") != "60" || problem["status"] != 429.0 || problem["retry_after"] != 60.0 {
		t.Errorf("one too many: %s %v", shows(resp), problem)
	}
	if resp, problem := call("thing.set_name", "b"); shows(resp) != "120/119" || problem["status"] != 400.0 {
		t.Errorf("another conversation: %s %v", shows(resp), problem)
	}
	if resp, problem := call("thing.set_name", ""); shows(resp) != "120/119" || problem["status"] != 400.0 {
		t.Errorf("no conversation: %s %v", shows(resp), problem)
	}
	if resp, _ := post(t, s, "PUT", "/v1/o/thing", both, `{"name": "a"}`); shows(resp) != "120/118" {
		t.Errorf("REST is in no conversation: %s", shows(resp))
	}
}
