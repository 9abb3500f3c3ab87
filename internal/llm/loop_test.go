package llm_test

import (
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/llm"
)

// A key whose address is the gateway's own, and which the gateway takes for a credential of a run,
// has a call come back to it. It ends after a few rounds, and does not hold all that the account may.
func TestCallsToOneselfEnd(t *testing.T) {
	t.Parallel()
	d := &desk{}
	url, _ := gateway(t, d, nil)
	d.mu.Lock()
	d.route = llm.Route{Provider: llm.Compatible, BaseURL: url, Key: token, Model: "m"}
	d.mu.Unlock()
	resp, text := do(t, ask(t, url, "/v1/chat/completions", `{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}]}`))
	if resp.StatusCode < http.StatusInternalServerError || !strings.Contains(text, llm.SlugUnavailable) {
		t.Errorf("%s: %s", resp.Status, text)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.asked); n < 2 || n > 40 {
		t.Errorf("the gateway was asked %d times", n)
	}
}
