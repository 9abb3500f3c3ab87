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
