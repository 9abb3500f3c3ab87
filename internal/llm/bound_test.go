package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/llm"
)

const boundPrices = `
as_of: 2026-01-02
prices:
  - {provider: openai, family: m, input: 1, output: 10, context: 50_000, max_output: 4000, image: 3000,
     tiers: {priority: {input: 2, output: 20}, flex: {input: 0.5, output: 5}}}
  - {provider: anthropic, family: m, input: 1, output: 10, max_output: 4000, context: 20_000,
     long: {above: 3000, beta: context-1m, input: 2, output: 15}}
`

// part is a call with a part of a prompt that is no text.
func part(p string) string {
	return `"max_tokens":9,"messages":[{"role":"user","content":[` + p + `]}]`
}

// TestNoCallCostsMoreThanIsSetAside: whatever an agent writes into a call, what it costs was set
// aside before, or the call is not made. Each call is answered with all that it may cost.
func TestNoCallCostsMoreThanIsSetAside(t *testing.T) {
	t.Parallel()
	prices, err := llm.ParsePrices([]byte(boundPrices))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 4000)
	for name, c := range map[string]struct {
		path, body, beta string
		input, out       int64  // tokens that the provider counts
		tier             string // that it says it has served the call in
		status           int
		cost             int64 // micro-dollars
		left             int64 // 0: any amount
		setAside         int64 // at least
		maker            llm.Provider
		sentWith         string // what the provider gets
	}{
		"priority": {body: `"service_tier":"priority","max_tokens":1000`, input: 50, out: 1000, tier: "priority", cost: 20_100},
		"priority by the provider's word alone": {
			body: `"service_tier":"priority","max_tokens":1000`, input: 50, out: 1000, tier: "default",
			cost: 10_050, setAside: 20_000},
		"priority that nobody confirms": {body: `"service_tier":"priority","max_tokens":1000`, input: 50, out: 1000, cost: 20_100},
		"a tier that is not known": {
			body: `"service_tier":"urgent","max_tokens":1000`, input: 50, out: 1000, tier: "priority", cost: 20_100,
		},
		"a tier in letters by their number": {
			body: `"service_\u0074ier":"priority","max_tokens":1000`, input: 50, out: 1000, tier: "priority", cost: 20_100,
		},
		"flex": {
			body: `"service_tier":"flex","max_tokens":1000`, input: 50, out: 1000, tier: "flex", cost: 5_025, setAside: 10_000,
		},
		"flex that is refused": {
			body: `"service_tier":"flex","max_tokens":1000`, input: 50, out: 1000, tier: "default", cost: 10_050,
		},
		"too little for priority":     {body: `"service_tier":"priority","max_tokens":1000`, left: 15_000, status: 402},
		"a tier twice":                {body: `"service_tier":"flex","service_tier":"priority"`, status: 400},
		"a hundred answers":           {body: `"n":100,"max_tokens":10`, input: 30, out: 1000, cost: 10_030},
		"more answers than there are": {body: `"n":1000000,"max_tokens":10`, input: 30, out: 1280, cost: 12_830},
		"a hundred answers of little": {body: `"n":100`, left: 500_000, status: 402},
		"a stream without a count": {
			body: `"stream":true,"stream_options":{"include_usage":false},"max_tokens":9`, sentWith: `"include_usage":true`,
		},
		"a picture by its address": {body: part(`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`),
			input: 3000, out: 9, cost: 3_090},
		"a file that is kept elsewhere": {body: part(`{"type":"file","file":{"file_id":"f1"}}`),
			input: 50_000, out: 9, cost: 50_090},
		"the same, in letters by their number": {body: part(`{"type":"file","file":{"file_\u0069d":"f1"}}`),
			input: 50_000, out: 9, cost: 50_090},
		"a conversation that is kept elsewhere": {path: "/v1/responses", body: `"previous_response_id":"resp_1","max_output_tokens":9`,
			input: 50_000, out: 9, cost: 50_090},
		"the same, with little left": {
			path: "/v1/responses", body: `"previous_response_id":"resp_1","max_output_tokens":9`, left: 40_000, status: 402,
		},
		"in the background": {path: "/v1/responses", body: `"background":true,"max_output_tokens":9`, status: 400},
		"not in the background": {
			path: "/v1/responses", body: `"background":false,"previous_response_id":null,"max_output_tokens":9`, input: 40, out: 9, cost: 130,
		},
		"a long prompt": {
			path: "/v1/messages", body: `"max_tokens":100,"system":"` + long + `"`, beta: "x, context-1m-2025-08-07", maker: llm.Anthropic,
			input: 4000, out: 100, cost: 9_500},
		"a long prompt of few tokens": {
			path: "/v1/messages", body: `"max_tokens":100,"system":"` + long + `"`, beta: "context-1m-2025-08-07",
			maker: llm.Anthropic, input: 2000, out: 100, cost: 3_000, setAside: 9_500},
		"a document": {path: "/v1/messages", body: part(`{"type":"document","source":{"type":"url","url":"https://x"}}`),
			maker: llm.Anthropic, input: 3_000, out: 9, cost: 3_090},
		"a document in a long prompt": {path: "/v1/messages", body: part(`{"type":"document","source":{"type":"url"}}`),
			beta: "context-1m-2025-08-07", maker: llm.Anthropic, input: 20_000, out: 9, cost: 40_135},
		"a tool for searches of one's own": {body: `"max_tokens":9,"tools":[{"type":"function","function":{"name":"kb_search"}}]`, left: 1000,
			input: 50, out: 9, cost: 140},
		"what is called like a tool of a provider's": {body: `"max_tokens":9,"tools":[{"type":"function","function":{"name":"web_fetch",
			"parameters":{"type":"object","properties":{"document":{"type":"string"},"file_id":{"type":"string"}}}}}]`, left: 1000,
			input: 50, out: 9, cost: 140},
		"a text with the number of a letter": {body: part(`{"type":"text","text":"'\\u0041' is \"file_id\": \"document\""}`), left: 1000,
			input: 50, out: 9, cost: 140},
		"a search by the provider": {body: `"max_tokens":9,"tools":[{"type" : "web_search_preview"}]`, left: 40_000, status: 402},
		"models to fall back on":   {body: `"models":["dear/one"],"max_tokens":9`, maker: llm.OpenRouter, status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 1)
			far := provider(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked <- string(body)
				w.Header().Set("Content-Type", "application/json")
				switch c.path {
				case "/v1/messages":
					fmt.Fprintf(w, `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",
						"usage":{"input_tokens":%d,"output_tokens":%d,"service_tier":"standard"}}`, c.input, c.out)
				case "/v1/responses":
					fmt.Fprintf(w, `{"object":"response","status":"completed","service_tier":%q,"output":[{"type":"message",
						"content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":%d,"output_tokens":%d}}`, c.tier, c.input, c.out)
				default:
					fmt.Fprintf(w, `{"service_tier":%q,"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],
						"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, c.tier, c.input, c.out)
				}
			})
			if c.maker == "" {
				c.maker = llm.OpenAI
			}
			if c.path == "" {
				c.path = "/v1/chat/completions"
			}
			d := &desk{route: llm.Route{Provider: c.maker, BaseURL: far, Key: key}}
			if c.left > 0 {
				d.left = &c.left
			}
			url, _ := gateway(t, d, func(g *llm.Config) { g.Prices = prices })
			req := ask(t, url, c.path, `{"model":"m",`+c.body+`}`)
			if c.beta != "" {
				req.Header.Set("Anthropic-Beta", c.beta)
			}
			resp, text := do(t, req)
			if c.status != 0 {
				if resp.StatusCode != c.status || len(asked) > 0 {
					t.Errorf("%d %s, and the provider was asked %d times", resp.StatusCode, text, len(asked))
				}
				return
			}
			u := d.recorded(t)
			if resp.StatusCode != 200 || u.CostMicros == nil || c.sentWith == "" && *u.CostMicros != c.cost || *u.CostMicros > u.Reserved ||
				u.Reserved < c.setAside {
				t.Errorf("%d %s: %+v, want %d", resp.StatusCode, text, u, c.cost)
			}
			if sent := <-asked; !strings.Contains(sent, c.sentWith) {
				t.Errorf("the provider gets %s", sent)
			}
		})
	}
}

// TestOwnPricesHaveTiers: what an account pays for a model in another tier, and for a long prompt,
// stands to its own price as it does in the table.
func TestOwnPricesHaveTiers(t *testing.T) {
	t.Parallel()
	table, err := llm.ParsePrices([]byte(boundPrices))
	if err != nil {
		t.Fatal(err)
	}
	half := llm.Price{Input: 500_000, Output: 6_000_000, CacheRead: 500_000, CacheWrite: 500_000}
	own := table.Over(llm.Row{Provider: llm.OpenAI, Model: "*", Price: half},
		llm.Row{Provider: llm.Anthropic, Model: "m", Price: llm.Price{Input: 100_000, Output: 1_000_000}})
	for _, c := range []struct {
		maker       llm.Provider
		model, tier string
		tokens      llm.Tokens
		want        int64
	}{
		{llm.OpenAI, "m", "", llm.Tokens{InputTokens: 1000, OutputTokens: 1000}, 6_500},
		{llm.OpenAI, "m", "priority", llm.Tokens{InputTokens: 1000, OutputTokens: 1000}, 13_000},
		{llm.OpenAI, "m", "flex", llm.Tokens{InputTokens: 1000, OutputTokens: 1000}, 3_250},
		{llm.OpenAI, "m", "batch", llm.Tokens{InputTokens: 1000, OutputTokens: 1000}, 6_500},
		{llm.OpenAI, "another", "priority", llm.Tokens{InputTokens: 1000, OutputTokens: 1000}, 6_500},
		{llm.Anthropic, "m", "", llm.Tokens{InputTokens: 10_000, OutputTokens: 1000}, 3_500},
		{llm.Anthropic, "m", "priority", llm.Tokens{InputTokens: 1000, OutputTokens: 1000}, 1_100},
	} {
		if got := own.Cost(c.maker, c.model, c.tier, c.tokens); got == nil || *got != c.want {
			t.Errorf("%+v costs %v", c, got)
		}
	}
	for _, bad := range []string{
		"long: {above: 0, input: 1, output: 1}", "long: {input: 1, output: 1}", "long: {above: 9, input: 1}",
		"tiers: {urgent: {input: 1, output: 1}}",
		"tiers: {flex: {input: 1}}", "context: -1", "image: 20000000",
	} {
		text := "as_of: 2026-01-02\nprices: [{provider: openai, family: a, input: 1, output: 1, " + bad + "}]"
		if _, err := llm.ParsePrices([]byte(text)); err == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
}
