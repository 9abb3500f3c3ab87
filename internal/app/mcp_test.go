package app

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// tool calls a row over MCP with what its path and body would hold, and
// answers the problem or the answer.
func (y *yard) tool(o op.Op, bearer string, values map[string]string, body string) (content json.RawMessage, failed bool) {
	y.t.Helper()
	args := map[string]any{}
	if body != "" {
		if err := json.Unmarshal([]byte(body), &args); err != nil {
			y.t.Fatal(err)
		}
	}
	path := strings.Split(filled(o, values), "/")
	for i, seg := range strings.Split(o.Path, "/") {
		if strings.HasPrefix(seg, "{") {
			args[strings.TrimSuffix(strings.Trim(seg, "{}"), "...")] = path[i]
		}
	}
	frame, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": o.ID, "arguments": args}})
	if err != nil {
		y.t.Fatal(err)
	}
	var r struct {
		Result *struct {
			StructuredContent json.RawMessage
			IsError           bool
		}
	}
	a := y.send("POST", mcp.Path, bearer, string(frame)).want(200)
	if decode(y.t, a, &r); r.Result == nil {
		y.t.Fatalf("%s: %s", o.ID, a.body)
	}
	return r.Result.StructuredContent, r.Result.IsError
}

// isProblem holds the content of a call against a problem.
func isProblem(t *testing.T, content json.RawMessage, failed bool, status int, slug string) {
	t.Helper()
	var p struct {
		Type   string
		Status int
	}
	if err := json.Unmarshal(content, &p); err != nil || !failed || p.Status != status || !strings.HasSuffix(p.Type, "/problems/"+slug) {
		t.Errorf("want %d %s: %s", status, slug, content)
	}
}

func TestEveryToolIsGuarded(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.send("POST", mcp.Path, "", `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "task.list"}}`).problem(401,
		"unauthenticated")
	y.send("POST", mcp.Path, id.Secret(id.PAT),
		`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "task.list"}}`).problem(401, "unauthenticated")
	everything := policy.Scopes(policy.Vocabulary()...)
	for _, o := range Ops() {
		if !o.IsTool() || noScope[o.ID] != "" {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t, acct: y.acct}
			need, _ := policy.ParseScopes(o.Rule.Names())
			for _, name := range need.Names() {
				one, _ := policy.ParseScopes([]string{name})
				content, failed := y.tool(o, y.mint(y.acct, nil, everything&^one&^o.Rule.Instead(), nil), nil, "")
				isProblem(t, content, failed, 403, "missing-scope")
			}
		})
	}
}

func TestForeignIsUnknownToTools(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	operator, reader := y.operator(), y.owner
	for _, o := range Ops() {
		if len(pathParams(o.Path)) == 0 || !o.IsTool() || byName[o.ID] != "" || everywhere[o.ID] != "" || ofHosts[o.ID] != "" {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t}
			bearer, theirs := y.apart()
			bearer = entitled(o, bearer, operator, reader)
			body := sampleBody(t, o)
			if q := textFor[o.ID]; q != "" {
				body = `{"q": "` + q + `"}`
			}
			unknown, failed := y.tool(o, bearer, nobodys, body)
			isProblem(t, unknown, failed, 404, "not-found")
			foreign, failed := y.tool(o, bearer, theirs, body)
			isProblem(t, foreign, failed, 404, "not-found")
			own := []string{"request_id", "instance"}
			if a, b := without(t, unknown, own), without(t, foreign, own); !bytes.Equal(a, b) {
				t.Errorf("foreign and unknown differ:\n%s\n%s", a, b)
			}
		})
	}
}

// A list of all tools may have maxToolList bytes, and maxTool of them for one tool at the mean:
// agents read the list before their first call.
const (
	maxToolList = 200_000
	maxTool     = 660
)

// TestToolListIsShort holds that a list of all tools stays short, and that no argument's
// schema is a bare true, which strict clients refuse. Only the members that an object may
// have in addition may be anything.
func TestToolListIsShort(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	token := y.mint(y.acct, nil, policy.Scopes(policy.Vocabulary()...), nil)
	a := y.send("POST", mcp.Path, token, `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`).want(200)
	var r struct {
		Result struct {
			Tools      []schema
			NextCursor *string
		}
	}
	if decode(t, a, &r); len(r.Result.Tools) < 200 || r.Result.NextCursor != nil {
		t.Errorf("one answer lists %d tools", len(r.Result.Tools))
	}
	if t.Logf("%d tools in %d bytes", len(r.Result.Tools), len(a.body)); len(a.body) > min(maxToolList, maxTool*len(r.Result.Tools)) {
		t.Errorf("the list has %d bytes, %d a tool", len(a.body), len(a.body)/len(r.Result.Tools))
	}
	for _, tool := range r.Result.Tools {
		eachObject(tool["inputSchema"], "", func(at string, s schema) {
			if len(s) == 0 && !strings.HasSuffix(at, "/properties") && !strings.HasSuffix(at, "/not") {
				t.Errorf("%s: %s is a schema that says nothing", tool["name"], at)
			}
			for _, keyword := range []string{"items", "not"} {
				if s[keyword] == true {
					t.Errorf("%s: %s/%s is true", tool["name"], at, keyword)
				}
			}
			for _, keyword := range []string{"properties", "$defs"} {
				inner, _ := s[keyword].(schema)
				for name, v := range inner {
					if v == true {
						t.Errorf("%s: %s/%s is true", tool["name"], at, name)
					}
				}
			}
			for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
				if list, _ := s[keyword].([]any); slices.Contains(list, any(true)) {
					t.Errorf("%s: %s/%s has a true", tool["name"], at, keyword)
				}
			}
		})
	}
}

// The list shows what the scopes allow.
func TestToolList(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	list := func(scopes policy.Set) (names []string) {
		var r struct {
			Result struct{ Tools []struct{ Name string } }
		}
		token := y.mint(y.acct, &y.user, scopes, nil)
		decode(t, y.send("POST", mcp.Path, token, `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`).want(200), &r)
		for _, tool := range r.Result.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	for _, scopes := range []policy.Set{policy.Scopes(policy.ReadTasks), policy.Owner.Ceiling()} {
		var want []string
		for _, o := range Ops() {
			if need, _ := policy.ParseScopes(o.Rule.Names()); o.IsTool() && scopes.Has(need) {
				want = append(want, o.ID)
			}
		}
		if got := list(scopes); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("with %v the tools are %v, not %v", scopes.Names(), got, want)
		}
	}
}
