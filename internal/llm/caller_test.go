package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

// TestCaller shows that the platform's own calls reach a provider as an agent's do,
// over either API, and come back as text or as a fault.
func TestCaller(t *testing.T) {
	const anthropic, openai = `{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":1}}`,
		`{"choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":1}}`
	for name, c := range map[string]struct {
		provider llm.Provider
		api      llm.API
		status   int
		answer   string
		want     string // text
		slug     string // of the fault
		body     string // a part of what was sent
	}{
		"messages": {llm.Anthropic, llm.Messages, 200, anthropic, "yes", "", `"system":"be brief"`},
		"chat":     {llm.OpenRouter, llm.Chat, 200, openai, "yes", "", `"max_tokens":100`},
		"openai":   {llm.OpenAI, llm.Chat, 200, openai, "yes", "", `"max_completion_tokens":100`},
		"cut":      {llm.Compatible, llm.Chat, 200, strings.Replace(openai, `"stop"`, `"length"`, 1), "", llm.SlugUnavailable, ""},
		"cut messages": {llm.Anthropic, llm.Messages, 200, strings.Replace(anthropic, "end_turn", "max_tokens", 1), "",
			llm.SlugUnavailable, ""},
		"no JSON":       {llm.Compatible, llm.Chat, 200, "<html>", "", llm.SlugUnavailable, ""},
		"a bad key":     {llm.Anthropic, llm.Messages, 401, `{"error":{"message":"bad key"}}`, "", llm.SlugAuth, ""},
		"too many":      {llm.Compatible, llm.Chat, 429, `{"error":{"message":"slow down"}}`, "", llm.SlugRateLimit, ""},
		"down":          {llm.Compatible, llm.Chat, 503, `oops`, "", llm.SlugUnavailable, ""},
		"no such model": {llm.Compatible, llm.Chat, 404, `{"error":{"message":"no model"}}`, "", llm.SlugModel, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var sent string
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				sent = string(b)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				io.WriteString(w, c.answer)
			}))
			defer upstream.Close()
			d := &desk{route: llm.Route{Provider: c.provider, BaseURL: upstream.URL, Key: key}}
			var handler http.Handler
			gateway(t, d, func(g *llm.Config) { handler = llm.NewGateway(*g) })
			text, err := llm.Caller{Gateway: handler}.Complete(t.Context(), token, llm.Prompt{
				API: c.api, Provider: c.provider, Model: "m", System: "be brief", Turns: []string{"q1", "a1", "q2"}, MaxTokens: 100,
			})
			if text != c.want || c.slug == "" && err != nil || c.slug != "" && fault.From(err).Slug != c.slug {
				t.Fatalf("%q, %v; want %q or %s", text, err, c.want, c.slug)
			}
			if u := d.recorded(t); c.want != "" && (u.InputTokens != 7 || u.Model != "m") {
				t.Errorf("counted %+v", u)
			}
			var body struct {
				Messages []struct{ Role, Content string }
			}
			if err := json.Unmarshal([]byte(sent), &body); err != nil || !strings.Contains(sent, c.body) {
				t.Fatalf("sent %s: %v", sent, err)
			}
			var said []string
			for _, m := range body.Messages {
				said = append(said, m.Role+" "+m.Content)
			}
			if got := strings.TrimPrefix(strings.Join(said, ", "), "system be brief, "); got != "user q1, assistant a1, user q2" {
				t.Errorf("sent %s", got)
			}
		})
	}
}

// A call whose context ends is abandoned.
func TestCallerGivesUp(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(reached)
		<-release
	}))
	defer upstream.Close()
	defer close(release)
	d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: upstream.URL}}
	var handler http.Handler
	gateway(t, d, func(g *llm.Config) { handler = llm.NewGateway(*g) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-reached:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, err := llm.Caller{Gateway: handler}.Complete(ctx, token, llm.Prompt{API: llm.Chat, Model: "m", Turns: []string{"q"}, MaxTokens: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if u := d.recorded(t); !u.Aborted {
		t.Errorf("counted %+v", u)
	}
}
