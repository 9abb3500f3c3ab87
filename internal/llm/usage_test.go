package llm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "yardmaster/internal/proof/chance" // seeds rapid
)

const events = "text/event-stream; charset=utf-8"

// Answers in the form of each provider.
var answers = []struct {
	api                     API
	name, contentType, body string
	want                    Tokens
}{
	{Messages, "messages document", "application/json",
		`{"id":"msg_1","content":[{"type":"text","text":"{\"usage\":{\"input_tokens\":9}} \\"}],"usage":{"input_tokens":12,"cache_creation_input_tokens":3,
		"cache_creation":{"ephemeral_5m_input_tokens":3,"input_tokens":77},"cache_read_input_tokens":40,"output_tokens":5,"service_tier":"standard"},"stop_reason":null}`,
		Tokens{12, 5, 40, 3, 0}},
	{Messages, "messages stream", events,
		"event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":25,\"cache_read_input_tokens\":7,\"output_tokens\":1}}}\r\n\r\n" +
			": a comment\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"\\\"usage\\\":{\\\"output_tokens\\\":999}\"}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		Tokens{25, 15, 7, 0, 0}},
	{Chat, "chat document", "application/json",
		` { "choices" : [ {"message":{"content":"hi","usage":{"prompt_tokens":1}}} ] , "usage" : { "prompt_tokens" : 100 , "completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":2}}}`,
		Tokens{36, 7, 64, 0, 0}},
	{Chat, "chat stream", events,
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n" +
			"data:{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":3,\"cost\":0.0012,\"prompt_tokens_details\":{\"cached_tokens\":0}}}\n\ndata: [DONE]\n\n",
		Tokens{11, 3, 0, 0, 0}},
	{Responses, "responses document", "application/json",
		`{"object":"response","output":[],"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":20},"output_tokens":8,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":58}}`,
		Tokens{30, 8, 20, 0, 0}},
	{Responses, "responses stream", events,
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"usage\":null,\"metadata\":{\"usage\":{\"input_tokens\":3}}}}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"" +
			strings.Repeat("long ", 400) +
			"\"}]}],\"usage\":{\"input_tokens\":50,\"input_tokens_details\":{\"cached_tokens\":20},\"output_tokens\":8}}}\n\n",
		Tokens{30, 8, 20, 0, 0}},
	{Gemini, "gemini document", "application/json",
		`{"candidates":[{"content":{"parts":[{"text":"{\"usageMetadata\":{\"promptTokenCount\":9}}"}]}}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"totalTokenCount":150,"cachedContentTokenCount":64,"thoughtsTokenCount":40,"toolUsePromptTokenCount":3,"promptTokensDetails":[{"modality":"TEXT","tokenCount":100}]}}`,
		Tokens{39, 47, 64, 0, 0}},
	{Gemini, "gemini stream", events,
		"data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":12,\"thoughtsTokenCount\":5}}\r\n\r\n" +
			"data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":12,\"candidatesTokenCount\":8,\"thoughtsTokenCount\":5}}\r\n\r\n",
		Tokens{12, 13, 0, 0, 0}},
	{Chat, "one event on two data lines", events,
		"data: {\"usage\":\ndata: {\"prompt_tokens\":4,\ndata: \"completion_tokens\":2}}\n\n",
		Tokens{4, 2, 0, 0, 0}},
}

func meter(api API, contentType string) *Meter {
	return NewMeter(Endpoint{API: api}, http.StatusOK, http.Header{"Content-Type": {contentType}})
}

func TestMeterCountsAtEveryChunking(t *testing.T) {
	for _, a := range answers {
		t.Run(a.name, rapid.MakeCheck(func(t *rapid.T) {
			m := meter(a.api, a.contentType)
			for rest := []byte(a.body); len(rest) > 0; {
				n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "n")
				m.Write(rest[:n])
				rest = rest[n:]
			}
			m.End(nil)
			got, counted := m.Tokens()
			if d := cmp.Diff(a.want, got); d != "" || !counted {
				t.Fatal(counted, d)
			}
		}))
	}
}

func TestMeterWithoutACount(t *testing.T) {
	for _, body := range []string{
		``, `null`, `[{"usage":{"input_tokens":3}}]`, `{"usage":null}`, `{"usage":{"input_tokens":"3"}}`, `{"usage":[{"input_tokens":3}]}`,
		`{"usage":{"input_tokens":1.5e3}}`, `{"usage":{"input_tokens":-3}}`, `{"a":{"usage":{"input_tokens":3}}}`, `}}}{"x":1`,
		`{"usage":{"input_tokens":123456789012345678901234567890}}`,
	} {
		m := meter(Messages, "application/json")
		m.Write([]byte(body))
		m.End(nil)
		if got, counted := m.Tokens(); counted || got != (Tokens{}) {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// The usage of a stream that breaks off before the provider's count is estimated.
func TestMeterEstimates(t *testing.T) {
	m := meter(Chat, events)
	for i := range 10 {
		fmt.Fprintf(m, "data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
	}
	if _, counted := m.Tokens(); counted {
		t.Fatal("counted")
	}
	if got := m.Estimate(400); got != (Tokens{InputTokens: 100, OutputTokens: 10}) {
		t.Fatal(got)
	}
}

func TestMeterDoesNotAllocate(t *testing.T) {
	a := answers[1]
	m := meter(a.api, a.contentType)
	if n := testing.AllocsPerRun(100, func() { m.Write([]byte(a.body)) }); n > 2 { // the conversion of the body, and the reason of the end
		t.Fatalf("%v allocations for each answer", n)
	}
}

func TestCost(t *testing.T) {
	p := DefaultPrices()
	micros := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		provider Provider
		model    string
		tokens   Tokens
		want     *int64
	}{
		{Anthropic, "claude-sonnet-4-5-20250929", Tokens{100_000, 10_000, 50_000, 20_000, 15_000},
			micros(300_000 + 150_000 + 15_000 + 75_000 + 90_000)},
		{Anthropic, "claude-sonnet-4-5-20250929", Tokens{100_000, 10_000, 100_000, 1, 0}, // longer, with its cache
			micros(600_000 + 225_000 + 60_000 + 8)},
		{Anthropic, "claude-sonnet-4-5", Tokens{InputTokens: 1}, micros(3)},
		{OpenAI, "gpt-5", Tokens{InputTokens: 1}, micros(1)}, // 1.25 rounds down
		{OpenAI, "gpt-5-2025-08-07", Tokens{InputTokens: 1000}, micros(1250)},
		{OpenAI, "gpt-5-mini", Tokens{OutputTokens: 1000}, micros(2000)},
		{OpenAI, "gpt-5.9", Tokens{InputTokens: 1000}, nil}, // begins like a known model, but is another
		{OpenAI, "gpt-5-pro", Tokens{InputTokens: 1000}, nil},
		{Anthropic, "gpt-5", Tokens{InputTokens: 1000}, nil},
		{OpenRouter, "anthropic/claude-sonnet-4.5", Tokens{InputTokens: 1000}, micros(3000)},
		{OpenRouter, "openai/gpt-4.1", Tokens{InputTokens: 1000}, micros(2000)},
		{OpenRouter, "meta/llama", Tokens{InputTokens: 1000}, nil},
		{Google, "models/gemini-2.5-flash", Tokens{InputTokens: 1000}, micros(300)},
		{Scripted, "scripted-1", Tokens{InputTokens: 1000}, nil},
	} {
		if d := cmp.Diff(c.want, p.Cost(c.provider, c.model, "", c.tokens)); d != "" {
			t.Errorf("%s %s: %s", c.provider, c.model, d)
		}
	}
	own, err := ParsePrices([]byte("as_of: 2026-01-02\nprices: [{provider: scripted, family: '*', input: 2, output: 4}, {provider: scripted, family: dear, input: 9, output: 9}]"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(micros(2*10+4*5+2*3), own.Cost(Scripted, "any", "", Tokens{10, 5, 3, 0, 0})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(micros(9), own.Cost(Scripted, "dear", "", Tokens{InputTokens: 1})); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "as_of: x", "as_of: 2026-01-02\nprices: [{provider: nobody, family: a, input: 1, output: 1}]",
		"as_of: 2026-01-02\nprices: [{provider: openai, family: a, input: -1, output: 1}]",
		"as_of: 2026-01-02\nprices: [{provider: openai, family: a, input: .nan, output: 1}]",
		"as_of: 2026-01-02\nprices: [{provider: openai, family: a, input: 1}]", "as_of: 2026-01-02\nrates: []"} {
		if _, err := ParsePrices([]byte(bad)); err == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
}
