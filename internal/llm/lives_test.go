package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/llm"
)

// A later zero takes nothing away from what was counted before, so that a call costs
// what it has cost; and what is kept for an hour costs more than what is kept for five
// minutes.
func TestCachesArePriced(t *testing.T) {
	prices, err := llm.ParsePrices([]byte(`
as_of: 2026-01-02
prices:
  - {provider: compatible, family: m, input: 1, output: 2, cache_read: 0.1, cache_write: 1.25}
  - {provider: compatible, family: plain, input: 1, output: 2}
  - {provider: compatible, family: told, input: 1, output: 2, cache_write: 1.25, cache_write_1h: 3}
`))
	if err != nil {
		t.Fatal(err)
	}
	const hour = `,"cache_creation":{"ephemeral_5m_input_tokens":4000,"ephemeral_1h_input_tokens":6000}`
	for _, c := range []struct {
		model, lives string
		want         int64 // micro-dollars
	}{
		{"m", "", 10 + 12_500 + 5_000 + 200},
		{"m", hour, 10 + 5_000 + 12_000 + 5_000 + 200},
		{"plain", hour, 10 + 10_000 + 50_000 + 200},
		{"told", hour, 10 + 5_000 + 18_000 + 50_000 + 200},
	} {
		far := provider(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			event := func(text string) { fmt.Fprintf(w, "data: %s\n\n", text) }
			event(`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":10000,` +
				`"cache_read_input_tokens":50000,"output_tokens":1` + c.lives + `}}}`)
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}`)
			event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,` +
				`"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":100}}`)
			event(`{"type":"message_stop"}`)
		})
		d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: far}}
		url, _ := gateway(t, d, func(g *llm.Config) { g.Prices = prices })
		do(t, ask(t, url, "/v1/messages", `{"model":"`+c.model+`","stream":true,"max_tokens":100,"system":"`+strings.Repeat("x", 70_000)+
			`","cache_control":{"type":"ephemeral","ttl":"1h"}}`))
		u := d.recorded(t)
		if u.CostMicros == nil || *u.CostMicros != c.want {
			t.Errorf("%s%s: %v, want %d", c.model, c.lives, u.CostMicros, c.want)
		}
		if u.Reserved < c.want {
			t.Errorf("%s%s: %d were set aside for %d", c.model, c.lives, u.Reserved, c.want)
		}
	}
}

// counted makes a call of a model that costs a dollar for a million tokens in and two for a million
// out, whose answer is given, and returns the record of it.
func counted(t *testing.T, p llm.Provider, path, contentType, answer string) llm.Usage {
	t.Helper()
	prices, err := llm.ParsePrices([]byte("as_of: 2026-01-02\nprices: [{provider: " + string(p) +
		", family: m, input: 1, output: 2, cache_read: 0.1, cache_write: 1.25}]"))
	if err != nil {
		t.Fatal(err)
	}
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, answer)
	})
	d := &desk{route: llm.Route{Provider: p, BaseURL: far, Model: "m"}}
	url, _ := gateway(t, d, func(g *llm.Config) { g.Prices = prices })
	resp, text := do(t, ask(t, url, path, fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":100,"messages":[{"role":"user","content":"%s"}]}`,
		contentType == sse, strings.Repeat("x", 40_000))))
	if resp.StatusCode != 200 || text != answer {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	return d.recorded(t)
}

const sse = "text/event-stream"

// lines are the events of a stream.
func lines(all ...string) string { return "data: " + strings.Join(all, "\n\ndata: ") + "\n\n" }

// TestA01StreamedAndWholeCostTheSame: tokens are what is paid for; that a provider reports a cost
// of nothing beside them makes no call free.
func TestA01StreamedAndWholeCostTheSame(t *testing.T) {
	for _, p := range []llm.Provider{llm.Compatible, llm.OpenRouter, llm.OpenAI} {
		for _, cost := range []string{``, `,"cost":0`, `,"cost":null`, `,"cost":0.0,"cost_details":{"upstream_inference_cost":0}`} {
			usage := `"usage":{"prompt_tokens":10000,"completion_tokens":50` + cost + `}`
			whole := counted(t, p, "/v1/chat/completions", "application/json",
				`{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],`+usage+`}`)
			streamed := counted(t, p, "/v1/chat/completions", sse, lines(`{"choices":[{"delta":{"content":"Hi."}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, `{"choices":[],`+usage+`}`, `[DONE]`))
			for how, u := range map[string]llm.Usage{"whole": whole, "streamed": streamed} {
				if u.CostMicros == nil || *u.CostMicros != 10_100 || u.Estimated {
					t.Errorf("%s, %s, %s: %+v", p, how, cost, u)
				}
			}
		}
	}
}

// TestA02UsageBesideAnEmptyChoice: usage is read from whatever chunk has it, and what was read
// from a cache is priced as that.
func TestA02UsageBesideAnEmptyChoice(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":10000,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":9000}}`
	for name, chunks := range map[string][]string{
		"an empty delta": {`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` + usage + `}`},
		"an empty content": {`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}],` + usage + `}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}]}`},
		"no choice":      {`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, `{"choices":[],` + usage + `}`},
		"and null after": {`{"choices":[{"delta":{},"finish_reason":"stop"}],` + usage + `}`, `{"choices":[],"usage":null}`},
	} {
		all := append([]string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi."}}],"usage":null}`}, chunks...)
		u := counted(t, llm.Compatible, "/v1/chat/completions", sse, lines(append(all, "[DONE]")...))
		if u.InputTokens != 1000 || u.CacheReadTokens != 9000 || u.CostMicros == nil || *u.CostMicros != 1000+900+100 {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// TestA03WritesThatNoLifetimeNames: what the breakdown of cache writes does not name is priced at
// the rate of five minutes.
func TestA03WritesThatNoLifetimeNames(t *testing.T) {
	const usage = `"usage":{"input_tokens":10,"cache_creation_input_tokens":10000,"cache_read_input_tokens":0,"output_tokens":50,` +
		`"cache_creation":{"ephemeral_5m_input_tokens":4000,"ephemeral_1h_input_tokens":3000},"server_tool_use":{"web_search_requests":2}}`
	whole := counted(t, llm.Anthropic, "/v1/messages", "application/json",
		`{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn",`+usage+`}`)
	streamed := counted(t, llm.Anthropic, "/v1/messages", sse, lines(`{"type":"message_start","message":{`+usage+`}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi."}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50}}`, `{"type":"message_stop"}`))
	for how, u := range map[string]llm.Usage{"whole": whole, "streamed": streamed} {
		// 7,000 at 1.25 dollars, and 3,000 at 1.6 times as much as that
		if want := int64(10 + 8750 + 6000 + 100); u.CostMicros == nil || *u.CostMicros != want || u.CacheWriteTokens != 7000 {
			t.Errorf("%s: %+v, cost %v, want %d", how, u, u.CostMicros, want)
		}
	}
}
