package scripted

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const file = `
scenarios:
  - name: verdict
    without_tools: true
    match: triage
    steps:
      - text: '{"verdict":"accept"}'
  - name: fix
    match: failing test
    steps:
      - text: Looking.
        shell: go test ./...
      - read: sum.go
      - edit: {path: sum.go, old: a - b, new: a + b}
      - write: {path: NOTES.md, content: "one\ntwo\n"}
      - search: func Sum
      - tool: {name: ticket, args: {id: 7}}
      - text: It passes now.
        usage: {input: 100, output: 9, cache_read: 30, cache_write: 4}
  - name: again
    match: /^retry (me|us)$/
    steps:
      - text: got through
        fail: {status: 429, times: 2, retry_after_s: 3}
  - name: slow
    match: slowly
    steps:
      - {text: one two three, delay_ms: 2, slow_ms: 1}
  - name: other-model
    model: small
    steps:
      - text: small talk
`

func serve(t testing.TB, text string) string {
	t.Helper()
	s, err := ParseScenarios([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(New(s))
	t.Cleanup(srv.Close)
	return srv.URL
}

func post(t testing.TB, url string, body any) *http.Response {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(encode(body)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func decode(t testing.TB, r io.Reader) object {
	t.Helper()
	var v object
	if err := json.NewDecoder(r).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// at reads the value at a path of decoded JSON.
func at(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(object)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

func params(names ...string) object {
	props := object{}
	for _, n := range names {
		props[n] = object{"type": "string"}
	}
	return object{"type": "object", "properties": props, "required": names}
}

// Two very different agents: one with a full set of tools over the messages API, one
// with a shell and a patch tool over responses.
func claudeTools() []object {
	tool := func(name string, args ...string) object { return object{"name": name, "input_schema": params(args...)} }
	write := tool("Write", "file_path", "content")
	write["input_schema"].(object)["properties"].(object)["file_path"] = object{"type": "string", "description": "The absolute path"}
	return []object{tool("Bash", "command", "description"), tool("Read", "file_path"), write,
		tool("Edit", "file_path", "old_string", "new_string"), tool("Grep", "pattern"), tool("mcp__desk__ticket", "id", "note")}
}

func codexTools() []object {
	return []object{
		{"type": "function", "name": "shell",
			"parameters": object{"properties": object{"command": object{"type": "array"}}, "required": []string{"command"}}},
		{"type": "custom", "name": "apply_patch"},
		{"type": "namespace", "name": "desk", "tools": []object{{"type": "function", "name": "ticket", "parameters": params("id")}}},
	}
}

func TestMessagesPlaysEveryStep(t *testing.T) {
	url := serve(t, file)
	messages := []object{{"role": "user", "content": []object{{"type": "text", "text": "Fix the failing test. <cwd>/task/repo</cwd>"}}}}
	type use struct {
		Name string
		Args object
	}
	var got []use
	for range 6 {
		v := decode(t, post(t, url+"/v1/messages", object{"model": "m", "tools": claudeTools(), "messages": messages}).Body)
		content := at(v, "content").([]any)
		call := content[len(content)-1].(object)
		if at(v, "stop_reason") != "tool_use" || call["type"] != "tool_use" {
			t.Fatalf("no call of a tool: %v", v)
		}
		got = append(got, use{call["name"].(string), call["input"].(object)})
		messages = append(messages, object{"role": "assistant", "content": content},
			object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": call["id"], "content": "ok"},
				{"type": "text", "text": "a reminder about the failing test"}}})
	}
	want := []use{
		{"Bash", object{"command": "go test ./...", "description": "scripted"}},
		{"Read", object{"file_path": "sum.go"}},
		{"Edit", object{"file_path": "sum.go", "old_string": "a - b", "new_string": "a + b"}},
		{"Write", object{"file_path": "/task/repo/NOTES.md", "content": "one\ntwo\n"}},
		{"Grep", object{"pattern": "func Sum"}},
		{"mcp__desk__ticket", object{"id": 7.0, "note": "scripted"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	last := object{"model": "m", "tools": claudeTools(), "messages": messages}
	v := decode(t, post(t, url+"/v1/messages", last).Body)
	if at(v, "content", 0, "text") != "It passes now." || at(v, "stop_reason") != "end_turn" {
		t.Fatalf("the end: %v", v)
	}
	usage := object{"input_tokens": 100.0, "output_tokens": 9.0, "cache_read_input_tokens": 30.0, "cache_creation_input_tokens": 4.0}
	if d := cmp.Diff(usage, at(v, "usage")); d != "" {
		t.Fatal(d)
	}
	if again := decode(t, post(t, url+"/v1/messages", last).Body); !cmp.Equal(v, again) {
		t.Fatal("the same request was answered in two ways")
	}
	// A new prompt that matches starts the scenario again.
	last["messages"] = append(messages, object{"role": "user", "content": "another failing test"})
	if v := decode(t, post(t, url+"/v1/messages", last).Body); at(v, "content", 1, "name") != "Bash" {
		t.Fatalf("a new prompt: %v", v)
	}
}

func TestResponsesMapsToPatchAndShell(t *testing.T) {
	url := serve(t, file)
	input := []object{{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": "a failing test"}}}}
	want := []struct{ kind, name, arg string }{
		{"function_call", "shell", `{"command":["bash","-lc","go test ./..."]}`},
		{"function_call", "shell", `{"command":["bash","-lc","cat 'sum.go'"]}`},
		{"custom_tool_call", "apply_patch", "*** Begin Patch\n*** Update File: sum.go\n@@\n-a - b\n+a + b\n*** End Patch\n"},
		{"custom_tool_call", "apply_patch", "*** Begin Patch\n*** Add File: NOTES.md\n+one\n+two\n*** End Patch\n"},
		{"function_call", "shell", `{"command":["bash","-lc","grep -rn -e 'func Sum' ."]}`},
		{"function_call", "ticket", `{"id":7}`},
	}
	for i, w := range want {
		v := decode(t, post(t, url+"/v1/responses", object{"model": "m", "tools": codexTools(), "input": input}).Body)
		output := at(v, "output").([]any)
		item := output[len(output)-1].(object)
		arg := item["arguments"]
		if w.kind == "custom_tool_call" {
			arg = item["input"]
		}
		if item["type"] != w.kind || item["name"] != w.name || arg != w.arg {
			t.Fatalf("step %d: %v", i, item)
		}
		input = append(input, item, object{"type": w.kind + "_output", "call_id": item["call_id"], "output": "ok"})
	}
	if v := decode(t, post(t, url+"/v1/responses", object{"model": "m", "tools": codexTools(), "input": input}).Body); at(v,
		"output", 0, "content", 0, "text") != "It passes now." {
		t.Fatalf("the end: %v", v)
	}
}

// The product's own agent creates files with its edit tool.
func TestWriteWithAnEditTool(t *testing.T) {
	u := turn{tools: []tool{{name: "edit",
		schema: schema{Properties: map[string]property{"path": {}, "old_string": {}, "new_string": {}}}}}}
	c, err := u.plan(step{Write: &writeStep{"a.txt", "hello\n"}})
	if err != nil || !cmp.Equal(c.args, map[string]any{"path": "a.txt", "old_string": "", "new_string": "hello\n"}) {
		t.Fatalf("%v %v", c, err)
	}
	if _, err := u.plan(step{Shell: "ls"}); err == nil || !strings.Contains(err.Error(), "edit") {
		t.Fatalf("no tool: %v", err)
	}
}

func events(t *testing.T, r io.Reader) (out []object) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if ok && text != "[DONE]" {
			out = append(out, decode(t, strings.NewReader(text)))
		}
	}
	return out
}

func TestStreams(t *testing.T) {
	url := serve(t, file)
	prompt := []object{{"role": "user", "content": "a failing test"}}
	chat := post(t, url+"/v1/chat/completions", object{"model": "m", "stream": true, "messages": prompt,
		"tools": []object{{"type": "function", "function": object{"name": "bash", "parameters": params("command")}}}})
	if ct := chat.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Fatal(ct)
	}
	var args string
	list := events(t, chat.Body)
	for _, e := range list {
		s, _ := at(e, "choices", 0, "delta", "tool_calls", 0, "function", "arguments").(string)
		args += s
	}
	if args != `{"command":"go test ./..."}` || at(list[len(list)-1], "usage", "completion_tokens") == nil {
		t.Fatalf("chat: %q in %v", args, list)
	}
	list = events(t, post(t, url+"/v1/messages", object{"model": "m", "stream": true, "messages": prompt, "tools": claudeTools()}).Body)
	var kinds []string
	for _, e := range list {
		kinds = append(kinds, e["type"].(string))
	}
	want := []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Fatal(d)
	}
	list = events(t, post(t, url+"/v1/responses",
		object{"model": "m", "stream": true, "input": "a failing test", "tools": codexTools()}).Body)
	for i, e := range list {
		if at(e, "sequence_number") != float64(i) {
			t.Fatalf("event %d is %v", i, e)
		}
	}
	if last := list[len(list)-1]; last["type"] != "response.completed" || at(last, "response", "usage", "input_tokens") == nil {
		t.Fatalf("the last event is %v", last)
	}
}

func TestSlowTextComesInWords(t *testing.T) {
	url := serve(t, file)
	var words []string
	for _, e := range events(t, post(t, url+"/v1/responses",
		object{"model": "m", "stream": true, "input": "slowly", "tools": codexTools()}).Body) {
		if e["type"] == "response.output_text.delta" {
			words = append(words, e["delta"].(string))
		}
	}
	if d := cmp.Diff([]string{"one ", "two ", "three"}, words); d != "" {
		t.Fatal(d)
	}
}

func TestWhatNoScenarioTells(t *testing.T) {
	url := serve(t, file)
	say := func(body object) any {
		return at(decode(t, post(t, url+"/v1/chat/completions", body).Body), "choices", 0, "message", "content")
	}
	tools := []object{{"type": "function", "function": object{"name": "bash"}}}
	user := func(text string) []object { return []object{{"role": "user", "content": text}} }
	for _, c := range []struct {
		body object
		want string
	}{
		{object{"model": "m", "messages": user("Name this: a failing test")}, titleText},
		{object{"model": "m", "messages": user("triage: a failing test")}, `{"verdict":"accept"}`},
		{object{"model": "m", "messages": user("hello"), "tools": tools}, unknownText},
		{object{"model": "small", "messages": user("hello"), "tools": tools}, "small talk"},
		{object{"model": "small", "messages": append(user("hello"), object{"role": "tool", "content": "x"}), "tools": tools}, doneText},
	} {
		if got := say(c.body); got != c.want {
			t.Errorf("%v: %v", c.body, got)
		}
	}
	if v := decode(t, post(t, url+"/v1/messages/count_tokens", object{"messages": user("hello")}).Body); at(v,
		"input_tokens").(float64) <= 0 {
		t.Error(v)
	}
	resp, err := http.Get(url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if v := decode(t, resp.Body); at(v, "data", 0, "id") != "small" {
		t.Error(v)
	}
}

func TestFailuresCountRetriesOfOneRequest(t *testing.T) {
	url := serve(t, file)
	try := func(body object) int { return post(t, url+"/v1/chat/completions", body).StatusCode }
	one := object{"model": "m", "tools": []object{{"function": object{"name": "bash"}}},
		"messages": []object{{"role": "user", "content": "retry me"}}}
	two := object{"model": "n", "tools": one["tools"], "messages": one["messages"]}
	var got []int
	for _, body := range []object{one, two, one, two, one, two, one} {
		got = append(got, try(body))
	}
	if fmt.Sprint(got) != "[429 429 429 429 200 200 429]" {
		t.Fatal(got)
	}
	resp := post(t, url+"/v1/chat/completions", one)
	if v := decode(t, resp.Body); resp.Header.Get("Retry-After") != "3" || at(v, "error", "type") != "rate_limit_error" {
		t.Fatal(resp.Header, v)
	}
}

func TestParseScenariosRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "EOF",
		"scenarios: []":                "no scenarios",
		"scenarios: [{steps: []}]":     "no name",
		"scenarios: [{name: a}]":       "a: there are no steps",
		"scenarios: [{name: a, x: 1}]": "field x not found",
		"scenarios: [{name: a, match: '/(/', steps: [{text: t}]}]":                  "match",
		"scenarios: [{name: a, steps: [{}]}]":                                       "step 1: the step does nothing",
		"scenarios: [{name: a, steps: [{shell: x, read: y}]}]":                      "not 2 of them",
		"scenarios: [{name: a, steps: [{text: t}]}, {name: a, steps: [{text: t}]}]": "two scenarios",
		"scenarios: [{name: a, steps: [{edit: {path: p}}]}]":                        "the old text",
		"scenarios: [{name: a, steps: [{text: t, fail: {status: 200}}]}]":           "status between",
		"scenarios: [{name: a, steps: [{text: t, delay_ms: -1}]}]":                  "delay_ms",
		"scenarios: [{name: a, without_tools: true, steps: [{shell: x}]}]":          "without tools",
		"scenarios: [{name: a, steps: [{tool: {name: n, args: {a: {1: x}}}}]}]":     "JSON",
		"scenarios: [{name: a, steps: [{text: t, usage: {input: -1}}]}]":            "usage",
	} {
		if _, err := ParseScenarios([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A file that parses can be played to its end over every API.
func FuzzParseScenarios(f *testing.F) {
	f.Add([]byte(file))
	f.Add([]byte("scenarios: [{name: a, steps: [{write: {path: /x, content: y}}]}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseScenarios(text)
		if err != nil {
			return
		}
		tools := parseAll(t, encode(object{"tools": claudeTools()}))
		for _, sc := range s.list {
			for at := range len(sc.Steps) + 1 {
				u := &turn{model: sc.Model, tools: tools, events: []event{{prompt: sc.Match}}}
				for range at {
					u.events = append(u.events, event{result: true})
				}
				_, st := s.choose(u)
				if c, err := u.plan(st); err == nil && c != nil && !json.Valid([]byte(c.arguments())) {
					t.Fatalf("arguments of %v are no JSON", st)
				}
			}
		}
	})
}

func parseAll(t *testing.T, body string) []tool {
	u, err := parseMessages([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return u.tools
}
