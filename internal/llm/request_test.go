package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestBody(t *testing.T) {
	for _, c := range []struct{ in, model, want string }{
		{`{"model":"a","x":1}`, "", `{"model":"a","x":1}`},
		{`{"model":"a","x":1}`, "b", `{"model":"b","x":1}`},
		{` { "x" : {"model":"a","stream":true} , "model" : "a" } `, `say "b"`,
			` { "x" : {"model":"a","stream":true} , "model" : "say \"b\"" } `},
		{`{"x":1}`, "b", `{"model":"b","x":1}`},
		{`{}`, "b", `{"model":"b"}`},
		{`{"model":"a","stream":true}`, "", `{"stream_options":{"include_usage":true},"model":"a","stream":true}`},
		{`{"stream":false,"model":"a"}`, "", `{"stream":false,"model":"a"}`},
		{`{"stream":true,"stream_options":{"include_usage":true},"model":"a"}`, "b",
			`{"stream":true,"stream_options":{"include_usage":true},"model":"b"}`},
		{`{"stream":true,"stream_options":{"include_obfuscation":false},"model":"a"}`, "b",
			`{"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true},"model":"b"}`},
		{`{"stream":true,"stream_options":null}`, "", `{"stream":true,"stream_options":{"include_usage":true}}`},
		{`{"stream":true,"stream_options":7}`, "", `{"stream":true,"stream_options":7}`},
		{`{"s":"\\\"} {","\u006dodel":"a"}`, "b", `{"s":"\\\"} {","\u006dodel":"b"}`},
	} {
		q, err := ParseRequest([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if d := cmp.Diff(c.want, string(q.Body(Edits{Model: c.model, CountChat: true}))); d != "" {
			t.Errorf("%s: %s", c.in, d)
		}
	}
	q, err := ParseRequest([]byte(`{"model":"a","stream":true}`))
	if err != nil || string(q.Body(Edits{})) != `{"model":"a","stream":true}` || !q.Stream || q.Model != "a" {
		t.Errorf("%v %v", q, err)
	}
}

func TestParseRequestRefuses(t *testing.T) {
	for _, in := range []string{
		``, `[]`, `"model"`, `{`, `{"model"`, `{"model":`, `{"model":"a"`, `{"model":"a",}`, `{"model":"a"}{}`, `{"model":"a"} x`,
		`{"model":7}`, `{"stream":"yes"}`, `{"model":"a","model":"b"}`, `{"model":"a","mod\u0065l":"b"}`, `{"Model":"a"}`,
		`{"a":[}`, `{"a":"\"}`,
		`{"a" 1}`, `{,}`, `{"a":1 "model":"b"}`,
		`{"max_tokens":1,"max_token\u017f":9}`, `{"max_tokenſ":9}`, `{"max_toKens":9}`, `{"ſtream":true}`,
		// Go's own parser takes these for max_tokens
	} {
		if q, err := ParseRequest([]byte(in)); err == nil {
			t.Errorf("%s: %+v", in, q)
		}
	}
}

// The gateway reads from a body what a JSON parser reads from it, and a rewritten
// body differs only in the intended members.
func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"model":"a","stream":true,"messages":[{"content":"x\\\"{"}],"stream_options":{"a":1}}`))
	f.Add([]byte(`{"x":[1,2,{"y":null}],"stream":false}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := ParseRequest(body)
		if err != nil || !json.Valid(body) {
			return
		}
		var before, after map[string]any
		if err := json.Unmarshal(body, &before); err != nil {
			t.Fatal(err)
		}
		if m, ok := before["model"].(string); ok && m != q.Model {
			t.Fatalf("model %q, not %q", q.Model, m)
		}
		if s, ok := before["stream"].(bool); ok && s != q.Stream {
			t.Fatalf("stream %v", q.Stream)
		}
		out := q.Body(Edits{Model: "another", CountChat: true})
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if after["model"] != "another" {
			t.Fatalf("%s", out)
		}
		if options, ok := after["stream_options"].(map[string]any); q.Stream && ok && options["include_usage"] != true {
			t.Fatalf("%s", out)
		}
		for _, m := range []map[string]any{before, after} {
			delete(m, "model")
			delete(m, "stream_options")
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkParseRequest(b *testing.B) {
	body := []byte(`{"model":"a","stream":true,"messages":[` +
		strings.Repeat(`{"role":"user","content":"`+strings.Repeat("some words of a prompt, ", 40)+`"},`, 200) + `{}]}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := ParseRequest(body); err != nil {
			b.Fatal(err)
		}
	}
}
