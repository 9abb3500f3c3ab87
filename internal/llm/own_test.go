package llm_test

import (
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/proof/recorded"
)

// The platform's own calls read every recorded answer as agents' calls do: a text, or a
// fault that says what kind of failure it was.
func TestRecordedAnswersOfOwnCalls(t *testing.T) {
	far, d := recorded.Play(t), &desk{}
	var handler http.Handler
	gateway(t, d, func(g *llm.Config) { handler = llm.NewGateway(*g) })
	played := 0
	for _, c := range recorded.Served(t) {
		p := llm.Prompt{API: llm.Chat, Provider: llm.Compatible, Model: "m", Turns: []string{"q"}, MaxTokens: 100}
		switch c.API {
		case "anthropic.messages":
			p.API, p.Provider = llm.Messages, llm.Anthropic
		case "openai.chat":
		default:
			continue
		}
		if c.Answer.End == "hang" || c.Answer.End == "reset" || len(c.Answer.Body()) > 1<<20 {
			continue
		}
		played++
		d.route = llm.Route{Provider: p.Provider, BaseURL: far.URL + "/" + c.Name, Key: key}
		text, err := llm.Caller{Gateway: handler}.Complete(t.Context(), token, p)
		d.recorded(t)
		w := c.Want
		switch long := w.Stop == "length" || w.Stop == "context"; {
		case w.Error == nil && !long:
			if err != nil || text != w.Text+w.Refusal {
				t.Errorf("%s: %q, %v", c.Name, text, err)
			}
		case err == nil || text != "" || fault.From(err).Detail == "" || strings.Contains(err.Error(), "EOF"):
			t.Errorf("%s: %q, %v", c.Name, text, err)
		case !long && w.Error.RetryAfterMS != nil && (w.Error.Kind == "rate_limited" || w.Error.Kind == "overloaded") &&
			fault.From(err).RetryAfter.Milliseconds() != *w.Error.RetryAfterMS:
			t.Errorf("%s: to be tried again after %s", c.Name, fault.From(err).RetryAfter)
		case long && !strings.Contains(fault.From(err).Detail, "longer"):
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	if played < 160 {
		t.Errorf("only %d cases", played)
	}
}
