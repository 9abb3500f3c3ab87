package mcp

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestListIsSpliced holds that the tools, which are long, are not encoded again for
// each list.
func TestListIsSpliced(t *testing.T) {
	l := listed{settled{ResultType: "complete"}, jsontext.Value(`[{"a": 1}]`)}
	got, ok := l.splice(response{JSONRPC: "2.0", ID: jsontext.Value("7")}).([]byte)
	if want := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","tools":[{"a": 1}]}}`; !ok || string(got) != want {
		t.Errorf("%t %s", ok, got)
	}
}

// TestResultIsSpliced holds that the result of a tool is written as an encoder would, which
// would read what the tool answered once more.
func TestResultIsSpliced(t *testing.T) {
	answer := func(body string, c called) called {
		c.Content, c.Structured = []text{{"text", body}}, jsontext.Value(body)
		return c
	}
	for name, c := range map[string]struct {
		id     string
		result called
		whole  bool // it is left to the encoder
	}{
		"a number":        {"7", answer(`{"a":"x\ny","b":[1,"<é>"]}`, called{encoded: true}), false},
		"a long number":   {"1e400", answer(`{"a":0}`, called{encoded: true}), false},
		"a text":          {`"a b"`, answer(`["a"]`, called{encoded: true, ResultType: "complete"}), false},
		"a problem":       {`"é"`, answer(`{"status":404}`, called{encoded: true, IsError: true}), false},
		"an escaped text": {`"\u0041"`, answer(`{"a":0}`, called{encoded: true}), true},
		"nothing":         {"1", answer(`{}`, called{encoded: true}), true},
		"replayed":        {"1", answer(`{"a":0}`, called{encoded: true, Meta: map[string]any{"x": true}}), true},
		"of others":       {"1", answer(`{"a" : 1}`, called{}), true},
	} {
		r := response{JSONRPC: "2.0", ID: jsontext.Value(c.id)}
		got := c.result.splice(r)
		spliced, ok := got.([]byte)
		r.Result = c.result
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if ok == c.whole || ok && !bytes.Equal(spliced, want) {
			t.Errorf("%s: %t\n%s\n%s", name, ok, spliced, want)
		}
	}
}
