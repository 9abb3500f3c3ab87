package llm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/llm"
)

const modelPrice = `
as_of: "2026-01-01"
prices:
  - {provider: openai, family: known, input: 1, output: 10, max_output: 4000}
  - {provider: anthropic, family: known, input: 1, output: 10, cache_write: 2, max_output: 4000}
`

// TestCallsFitTheBudget checks the cap that a provider receives when the budget
// allows the call unchanged, a shorter answer, or none.
func TestCallsFitTheBudget(t *testing.T) {
	prices, err := llm.ParsePrices([]byte(modelPrice))
	if err != nil {
		t.Fatal(err)
	}
	const pad = 1000 // the prompt is about a thousand bytes: at most a thousand tokens
	prompt := fmt.Sprintf("%0*d", pad, 0)
	chat := `{"model":"known",%s"messages":[{"role":"user","content":"` + prompt + `"}]}`
	for name, c := range map[string]struct {
		api    llm.API
		extra  string
		left   int64 // micro-dollars
		status int
		cap    float64 // the cap that the provider receives; 0: none
	}{
		"room for all":                  {llm.Chat, ``, 1_000_000, 200, 0},
		"as much as the model writes":   {llm.Chat, ``, 41_100, 200, 0},
		"less":                          {llm.Chat, ``, 21_000, 200, 1992},
		"less than the caller's cap":    {llm.Chat, `"max_tokens":3000,`, 21_000, 200, 1990},
		"more than the caller's cap":    {llm.Chat, `"max_tokens":300,`, 21_000, 200, 300},
		"two answers":                   {llm.Chat, `"n":2,`, 40_000, 200, 1945},
		"too little":                    {llm.Chat, ``, 11_000, 402, 0},
		"a short call fits into little": {llm.Chat, `"max_tokens":100,`, 3_000, 200, 100},
		"responses":                     {llm.Responses, ``, 21_000, 200, 1992},
		"messages":                      {llm.Messages, `"max_tokens":3000,`, 21_000, 200, 1890},
		"thinking has its share": {llm.Messages, `"max_tokens":3000,"thinking":{"type":"enabled","budget_tokens":2000},`,
			21_000, 402, 0},
		"thinking gets less": {llm.Messages, `"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":3999},`,
			30_000, 200, 2785},
		"thinking as it likes":     {llm.Messages, `"max_tokens":3000,"thinking":{"type":"adaptive"},`, 21_000, 200, 1886},
		"an unknown model is free": {llm.Chat, `"user":"x",`, 0, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan map[string]any, 1)
			base := provider(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var m map[string]any
				if err := json.Unmarshal(body, &m); err != nil {
					t.Error(err, string(body))
				}
				asked <- m
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, fine)
			})
			maker := llm.OpenAI
			if c.api == llm.Messages {
				maker = llm.Anthropic
			}
			d := &desk{route: llm.Route{Provider: maker, Key: key, BaseURL: base}, left: &c.left}
			url, _ := gateway(t, d, func(conf *llm.Config) { conf.Prices = prices })
			body := fmt.Sprintf(chat, c.extra)
			if name == "an unknown model is free" {
				d.route.Model = "unknown"
			}
			resp, text := do(t, ask(t, url, calls[c.api].path, body))
			if resp.StatusCode != c.status {
				t.Fatalf("%d %s", resp.StatusCode, text)
			}
			if c.status != 200 {
				if resp.Header.Get(llm.FaultHeader) != "budget_exhausted" || len(asked) > 0 || len(d.usage) > 0 {
					t.Errorf("refused with %v, the provider was asked %d times, %d calls were counted", resp.Header, len(asked),
						len(d.usage))
				}
				return
			}
			got := 0.0
			m := <-asked
			for _, k := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
				if v, ok := m[k].(float64); ok {
					got += v
				}
			}
			if d := got - c.cap; d < -12 || d > 12 { // the length of the body decides the last few tokens
				t.Errorf("the provider may write %v tokens, want about %v", got, c.cap)
			}
			said := resp.Header.Get(llm.CapHeader)
			lowered := c.cap > 0 && !strings.Contains(c.extra, fmt.Sprintf(`"max_tokens":%v,`, c.cap))
			if lowered != (said != "") || lowered && said != fmt.Sprint(got) {
				t.Errorf("the caller is told of a cap of %q, and it is %v", said, got)
			}
			if thinks, ok := m["thinking"].(map[string]any); ok && thinks["budget_tokens"] != nil {
				if n := thinks["budget_tokens"].(float64); n != got-1024 {
					t.Errorf("thinking has %v of %v tokens", n, got)
				}
			}
			u := d.recorded(t)
			if u.Reserved > c.left || u.CostMicros != nil && *u.CostMicros > u.Reserved {
				t.Errorf("%d reserved of %d, cost %v", u.Reserved, c.left, u.CostMicros)
			}
		})
	}
}
