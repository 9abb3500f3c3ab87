package sink

import (
	"encoding/json"
	"strings"
	"testing"

	"yardmaster/internal/llm"
)

// FuzzForm: whatever was asked and answered, a copy is one line of JSON, spans too, and a
// secret that stands in it as it is does not leave.
func FuzzForm(f *testing.F) {
	for _, m := range []Made{made(body("hello"), "it is ", canary), made(body(canary))} {
		f.Add(string(m.API), m.Body, m.Answer, m.Type, 200)
	}
	f.Add(string(llm.Chat), []byte(`{"messages":[{"role":"tool","tool_calls":[{}],"content":[1,null,{"type":7}]},[],{"content":{}}]}`), []byte(`{"choices":[{}]}`), "application/json", 200)
	f.Add(string(llm.Responses), []byte(`{"input":[{"type":"function_call","arguments":"{\"a\":"},{"type":"reasoning","summary":[{"text":"x"}]}]}`), []byte(`{}`), "", 500)
	f.Add(string(llm.Gemini), []byte(`{"contents":[{"parts":[{"functionCall":{"args":[]}},{"inlineData":{}}]}],"systemInstruction":[]}`), []byte(`[{}]`), "", 200)
	f.Fuzz(func(t *testing.T, api string, body, answer []byte, media string, status int) {
		switch llm.API(api) {
		case llm.Messages, llm.Chat, llm.Responses, llm.Gemini:
		default:
			return // it is the gateway's own word
		}
		m := Made{API: llm.API(api), Body: body, Asked: len(body) + len(answer)%2, Answer: answer, Type: media, Status: status}
		c, text := form(t, m, canary)
		if !json.Valid([]byte(text)) || strings.Count(text, "\n") != 1 || strings.Contains(text, canary) {
			t.Errorf("%s", text)
		}
		if b, err := spans([]Call{c}, "test"); err != nil || !json.Valid(b) {
			t.Errorf("%v: %s", err, b)
		}
	})
}
