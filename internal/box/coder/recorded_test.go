package coder

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/llm/answer"
	"yardmaster/internal/proof/recorded"
)

// Every recorded answer of an API that the agent speaks comes out of its client: text
// and calls, or a failure that names the kind.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	far := recorded.Play(t)
	played := 0
	for _, c := range recorded.Served(t) {
		w, ok := map[string]wire{"openai.chat": chatWire, "anthropic.messages": messagesWire, "openai.responses": responsesWire}[c.API]
		if !ok || c.Answer.End == "hang" { // who gives up an answer is the box's proxy
			continue
		}
		played++
		client := newClient(config{url: far.URL + "/" + c.Name, model: "m", wire: w}, http.DefaultTransport)
		var said strings.Builder
		r, err := client.once(t.Context(), []byte(`{}`), func(text string) { said.WriteString(text) })
		want := c.Want
		var failed *answer.Failure
		switch {
		case want.Error == nil && err != nil, want.Error != nil && !errors.As(err, &failed):
			t.Errorf("%s: %v", c.Name, err)
			continue
		case failed != nil && string(failed.Kind) != want.Error.Kind:
			t.Errorf("%s: %s, want %s", c.Name, failed.Kind, want.Error.Kind)
		}
		if c.Answer.End == "reset" && strings.HasPrefix(want.Text, r.text) { // it may throw away what was sent
			continue
		}
		if r.text != want.Text+want.Refusal || said.String() != r.text {
			t.Errorf("%s: said %q, want %q", c.Name, r.text, want.Text+want.Refusal)
		}
		if failed != nil {
			continue
		}
		if len(r.calls) != len(want.Tools) {
			t.Errorf("%s: %d calls, want %d", c.Name, len(r.calls), len(want.Tools))
			continue
		}
		ids := map[string]bool{}
		for i, call := range r.calls {
			if call.name != want.Tools[i].Name || call.id == "" || ids[call.id] || len(call.args) == 0 {
				t.Errorf("%s: call %d is %+v", c.Name, i, call)
			}
			ids[call.id] = true
		}
	}
	if played < 190 {
		t.Errorf("only %d cases", played)
	}
}
