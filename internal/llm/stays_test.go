package llm_test

import (
	"testing"

	"yardmaster/internal/llm"
)

// TestA11SignedThoughtsStay: what a provider has signed or encrypted goes to no other one, and
// over another key of the same.
func TestA11SignedThoughtsStay(t *testing.T) {
	t.Parallel()
	good := provider(t, well)
	for name, x := range map[string]struct{ path, body string }{
		"messages": {"/v1/messages", `{"model":"small","max_tokens":9,"messages":[{"role":"assistant","content":[
			{"type":"thinking","thinking":"hm","signature":"c2ln"}]},{"role":"user","content":"go on"}]}`},
		"redacted": {"/v1/messages", `{"model":"small","max_tokens":9,"messages":[{"role":"assistant","content":[
			{"type":"redacted_thinking","data":"c2ln"}]},{"role":"user","content":"go on"}]}`},
		"responses": {"/v1/responses", `{"model":"small","input":[{"type":"reasoning","summary":[],"encrypted_content":"c2ln"}]}`},
		"chat": {"/v1/chat/completions", `{"model":"small","messages":[{"role":"assistant","content":"hm",
			"reasoning_details":[{"type":"reasoning.encrypted","data":"c2ln"}]},{"role":"user","content":"go on"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := provider(t, says(500, `{"error":{"message":"oops"}}`))
			d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: bad, Model: "small", ID: "1"}, more: []llm.Route{
				{Provider: llm.Compatible, BaseURL: bad, Model: "small", ID: "2"},
				{Provider: llm.Compatible, BaseURL: good, Model: "small", ID: "3"},
			}}
			url, _ := gateway(t, d, func(c *llm.Config) { c.Prices = dear(t) })
			resp, text := do(t, ask(t, url, x.path, x.body))
			if resp.StatusCode/100 != 5 {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
			d.recorded(t)
			d.recorded(t) // the other key of the same provider
			if len(d.usage) != 0 {
				t.Errorf("it went elsewhere: %+v", <-d.usage)
			}
			word := `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":"a \"signature\" is no seal"}]}`
			if resp, text := do(t, ask(t, url, "/v1/messages", word)); resp.StatusCode != 200 {
				t.Errorf("a word in a text keeps a call: %d %s", resp.StatusCode, text)
			}
		})
	}
}

// TestSpentGift: a gift that is used up is no refusal of a call that the next gift serves.
func TestSpentGift(t *testing.T) {
	t.Parallel()
	good := provider(t, well)
	d := &desk{spent: "g1", route: llm.Route{
		Provider: llm.Compatible, BaseURL: good, Model: "small", ID: "1", Lent: llm.Lender{Gift: "g1", Account: "a"},
	}}
	url, _ := gateway(t, d, func(c *llm.Config) { c.Prices = dear(t) })
	body := `{"model":"small","messages":[{"role":"user","content":"hello"}]}`
	if resp, text := do(t, ask(t, url, "/v1/chat/completions", body)); resp.StatusCode != 402 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	d.mu.Lock()
	d.more = []llm.Route{{Provider: llm.Compatible, BaseURL: good, Model: "small", ID: "2", Lent: llm.Lender{Gift: "g2", Account: "b"}}}
	d.mu.Unlock()
	if resp, text := do(t, ask(t, url, "/v1/chat/completions", body)); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
