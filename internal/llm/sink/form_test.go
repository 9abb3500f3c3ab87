package sink

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"yardmaster/internal/llm"
)

// canary is a secret of which nothing may leave, and which nothing recognises by its form.
const canary = "correct horse battery staple 42"

// form writes a call down as it leaves.
func form(t *testing.T, m Made, secrets ...string) (Call, string) {
	t.Helper()
	var words Words
	c := Form(&m, words.Learn(secrets, []*Made{&m}))
	text, err := lines([]Call{c})
	if err != nil {
		t.Fatal(err)
	}
	return c, string(text)
}

// made is a streamed call of the API Messages with an answer of some pieces.
func made(body string, pieces ...string) Made {
	var answer strings.Builder
	event := func(name, data string) { fmt.Fprintf(&answer, "event: %s\ndata: %s\n\n", name, data) }
	event("message_start", `{"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`)
	event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for _, p := range pieces {
		text, _ := json.Marshal(p) // it is text
		event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+string(text)+`}}`)
	}
	event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`)
	event("message_stop", `{"type":"message_stop"}`)
	return Made{
		ID: "call", At: time.Unix(1_800_000_000, 0), Account: "acme", Session: "session", API: llm.Messages, Provider: llm.Anthropic,
		Model: "small", Body: []byte(body), Asked: len(body), Status: 200, Type: "text/event-stream", Answer: []byte(answer.String()),
		Usage: llm.Usage{Tokens: llm.Tokens{InputTokens: 3, OutputTokens: 9, CacheReadTokens: 4}, Streamed: true, Status: 200},
	}
}

// body is a request of the API Messages with one prompt.
func body(prompt string) string {
	text, _ := json.Marshal(prompt) // it is text
	return `{"model":"small","system":"Be brief.","messages":[{"role":"user","content":` + string(text) + `}]}`
}

// holds fails if a text has more than eight characters in a row of a secret, in any form of base64.
func holds(t *testing.T, text, secret string) {
	t.Helper()
	for i := range len(secret) - 8 {
		if strings.Contains(text, secret[i:i+9]) {
			t.Errorf("%q is in %s", secret[i:i+9], text)
			return
		}
	}
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(secret[shift:]))
		if part := encoded[4 : len(encoded)-4]; strings.Contains(text, part) {
			t.Errorf("%q is in %s", part, text)
		}
	}
}

func TestSecretsDoNotLeave(t *testing.T) {
	t.Parallel()
	in64 := base64.StdEncoding.EncodeToString
	for name, m := range map[string]Made{
		"in the prompt":           made(body("use " + canary + ", please")),
		"in base64 in the prompt": made(body("use " + in64([]byte("user:"+canary+":x")) + ", please")),
		"in the system prompt":    made(`{"system":[{"type":"text","text":"` + canary + `"}],"messages":[]}`),
		"in the input of a tool": made(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"sh",` +
			`"input":{"command":"echo ` + canary + `","` + canary + `":1}}]}]}`),
		"in what a tool said": made(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",` +
			`"content":[{"type":"text","text":"` + canary + `"}]}]}]}`),
		"in the answer":               made(body("hello"), "it is ", canary, "."),
		"in pieces of the answer":     made(body("hello"), "it is "+canary[:3], canary[3:11], canary[11:], " indeed"),
		"in base64 in the answer":     made(body("hello"), in64([]byte(canary))[:7], in64([]byte(canary))[7:]),
		"in the name of the model":    {API: llm.Messages, Model: canary},
		"in an image of the prompt":   made(`{"messages":[{"role":"user","content":[{"type":"image","source":{"data":"` + in64([]byte(canary)) + `"}}]}]}`),
		"in a prompt without its end": made(body("hello " + canary)[:70]),
	} {
		_, text := form(t, m, canary)
		holds(t, text, canary)
		if !json.Valid([]byte(text)) || !strings.Contains(text, `"account_id":"acme"`) && m.Account != "" {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// An answer that was cut may end in the middle of a secret.
func TestBeginningsOfSecretsDoNotLeave(t *testing.T) {
	t.Parallel()
	whole := made(body("hello"), "it is ", canary[:20])
	for _, m := range []Made{
		{Answer: whole.Answer, Cut: true}, {Answer: whole.Answer, Usage: llm.Usage{Aborted: true}},
	} {
		m.API, m.Status, m.Type = llm.Messages, 200, "text/event-stream"
		_, text := form(t, m, canary)
		if holds(t, text, canary); !strings.Contains(text, "it is") {
			t.Errorf("nothing else is left: %s", text)
		}
	}
}

// Tokens of runs, and what looks like a secret, are taken out without being told.
func TestWhatLooksLikeASecretDoesNotLeave(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"ghp_0123456789abcdefghijABCDEFGHIJ012345", "dev_att_0123456789abcdefghij", "AKIAIOSFODNN7EXAMPLE"} {
		_, text := form(t, made(body("use "+secret), "I use ", secret[:6], secret[6:]))
		holds(t, text, secret)
	}
	m := made(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"login","input":{"password":"hunter22"}}]}]}`)
	if _, text := form(t, m); strings.Contains(text, "hunter22") {
		t.Errorf("the value of a password: %s", text)
	}
	m = made(body("token dev_run_0123456789 and dev_run_0123456789 in base64: " +
		base64.StdEncoding.EncodeToString([]byte("dev_run_0123456789"))))
	m.Token = "dev_run_0123456789"
	_, text := form(t, m)
	holds(t, text, m.Token)
}

// TestConversations holds how each API is read.
func TestConversations(t *testing.T) {
	t.Parallel()
	for api, body := range map[llm.API]string{
		llm.Messages: `{"system":"Be brief.","messages":[{"role":"user","content":"hello"},
			{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"sh","input":{"a":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"done"}]}]}`,
		llm.Chat: `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"hello"}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"sh","arguments":"{\"a\":1}"}}]},
			{"role":"tool","tool_call_id":"1","content":"done"}]}`,
		llm.Responses: `{"instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"hello"}]},
			{"type":"function_call","call_id":"1","name":"sh","arguments":"{\"a\":1}"},
			{"type":"function_call_output","call_id":"1","output":"done"}]}`,
		llm.Gemini: `{"system_instruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"hello"}]},
			{"role":"model","parts":[{"functionCall":{"id":"1","name":"sh","args":{"a":1}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"1","name":"sh","response":"done"}}]}]}`,
	} {
		_, text := form(t, Made{API: api, Body: []byte(body)})
		for _, want := range []string{
			`{"content":"Be brief.","type":"text"}`, `{"role":"user","parts":[{"content":"hello","type":"text"}]}`,
			`{"arguments":{"a":1},"id":"1","name":"sh","type":"tool_call"}`, `{"id":"1","response":"done","type":"tool_call_response"}`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %s in %s", api, want, text)
			}
		}
	}
}

// Of a request that is cut, what is whole is there.
func TestCutRequest(t *testing.T) {
	t.Parallel()
	whole := `{"messages":[{"role":"user","content":"first"},{"role":"assistant","content":"second"},{"role":"user","content":"third"}]}`
	for end := range len(whole) {
		c, text := form(t, Made{API: llm.Messages, Body: []byte(whole[:end]), Asked: len(whole)})
		if !c.InputCut || strings.Contains(whole[:end], `"second"`) != strings.Contains(text, "second") || strings.Contains(text, `"thi"`) {
			t.Errorf("%s: %s", whole[:end], text)
		}
	}
	deep := strings.Repeat("[", 100_000)
	if _, text := form(t, Made{API: llm.Messages, Body: []byte(deep)}); !json.Valid([]byte(text)) {
		t.Error(text)
	}
}

// What is sent as OTLP is read by the protocol's own description, and named as the semantic
// conventions do.
func TestOTLP(t *testing.T) {
	t.Parallel()
	cost := int64(12)
	m := made(body("hello"), "Good ", "morning.")
	m.Usage.CostMicros = &cost
	c, _ := form(t, m)
	failed, _ := form(t, Made{
		ID: "other", At: m.At, Session: "session", Account: "acme", API: llm.Gemini, Provider: llm.Google, Model: "m", Status: 429,
	})
	text, err := spans([]Call{c, failed}, "test")
	if err != nil {
		t.Fatal(err)
	}
	var req collector.ExportTraceServiceRequest
	if err := protojson.Unmarshal(text, &req); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	all := req.ResourceSpans[0].ScopeSpans[0].Spans
	if len(all) != 2 || all[0].Name != "chat small" || all[1].Name != "generate_content m" || all[1].Status.Code != 2 ||
		all[0].StartTimeUnixNano != 1_800_000_000_000_000_000 || string(all[0].TraceId) != string(all[1].TraceId) {
		t.Errorf("spans %v", all)
	}
	got := map[string]string{}
	for _, a := range all[0].Attributes {
		got[a.Key] = a.Value.String()
	}
	for key, want := range map[string]string{
		"gen_ai.operation.name": `string_value:"chat"`, "gen_ai.provider.name": `string_value:"anthropic"`,
		"gen_ai.request.model": `string_value:"small"`, "gen_ai.conversation.id": `string_value:"session"`,
		"gen_ai.usage.input_tokens": `int_value:7`, "gen_ai.usage.output_tokens": `int_value:9`,
		"gen_ai.usage.cache_read.input_tokens": `int_value:4`,
	} {
		if got[key] != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
	if !strings.Contains(got["gen_ai.output.messages"], `Good morning.`) ||
		!strings.Contains(got["gen_ai.response.finish_reasons"], "stop") || !strings.Contains(got["gen_ai.input.messages"], "hello") ||
		!strings.Contains(got["gen_ai.system_instructions"], "Be brief.") {
		t.Errorf("attributes %v", got)
	}
}
