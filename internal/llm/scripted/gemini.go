package scripted

import (
	"encoding/json"
	"strings"
)

// geminiFolder is the address under which the Gemini API serves models by name.
const geminiFolder = "/v1beta/models/"

// gemini parses an address of the Gemini API. parse is nil for any other address,
// and for a stream in a form that the server does not offer.
func gemini(path, alt string) (parse func([]byte) (*turn, error), counts bool) {
	rest, ok := strings.CutPrefix(path, geminiFolder)
	model, action, _ := strings.Cut(rest, ":")
	stream := action == "streamGenerateContent"
	counts = action == "countTokens"
	if !ok || model == "" || action != "generateContent" && !counts && !(stream && alt == "sse") {
		return nil, false
	}
	return func(body []byte) (*turn, error) { return parseGemini(model, stream, body) }, counts
}

// part is a piece of a message, or of a tool's result.
type part struct {
	Text             string          `json:"text"`
	FunctionResponse json.RawMessage `json:"functionResponse"`
}

type parts []part

func (ps parts) content() (c content) {
	var texts []string
	for _, p := range ps {
		if p.FunctionResponse != nil {
			c.results++
		} else if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	c.text = strings.Join(texts, "\n")
	return c
}

func parseGemini(model string, stream bool, body []byte) (*turn, error) {
	var q struct {
		System struct {
			Parts parts `json:"parts"`
		} `json:"systemInstruction"`
		Contents []struct {
			Role  string `json:"role"`
			Parts parts  `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Declarations []struct {
				Name       string  `json:"name"`
				Parameters schema  `json:"parameters"`
				JSONSchema *schema `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := head{model, stream}.turn(len(body))
	t.system = q.System.Parts.content().text
	for _, set := range q.Tools {
		for _, f := range set.Declarations {
			if f.JSONSchema != nil {
				f.Parameters = *f.JSONSchema
			}
			t.tools = append(t.tools, tool{name: f.Name, schema: f.Parameters})
		}
	}
	for _, c := range q.Contents {
		if c.Role != "model" {
			t.add(message{Role: "user", Content: c.Parts.content()})
		}
	}
	return t, nil
}

// writeGemini answers in the form of generateContent.
func writeGemini(s *stream, a *answer) {
	prompt := a.usage.Input + a.usage.CacheRead + a.usage.CacheWrite
	usage := object{"promptTokenCount": prompt, "candidatesTokenCount": a.usage.Output, "totalTokenCount": prompt + a.usage.Output,
		"cachedContentTokenCount": a.usage.CacheRead}
	chunk := func(ps []object, finish string) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": ps}}
		if finish != "" {
			candidate["finishReason"] = finish
		}
		return object{"candidates": []object{candidate}, "usageMetadata": usage, "modelVersion": a.model, "responseId": a.id("")}
	}
	var called []object
	if a.call != nil {
		called = []object{{"functionCall": object{"id": a.id("call_"), "name": a.call.tool.name, "args": a.call.args}}}
	}
	if !a.stream {
		said := []object{}
		if a.text != "" {
			said = append(said, object{"text": a.text})
		}
		document(s.w, chunk(append(said, called...), "STOP"))
		return
	}
	for _, piece := range a.pieces() {
		s.data(chunk([]object{{"text": piece}}, ""))
		if !wait(s.r, a.slow) {
			return
		}
	}
	if called == nil {
		called = []object{{"text": ""}}
	}
	s.data(chunk(called, "STOP"))
}
