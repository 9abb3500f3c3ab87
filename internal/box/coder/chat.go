package coder

import (
	"bytes"
	"encoding/json"
	"strings"

	"yardmaster/internal/box/acp"
)

// chatWire is the chat completions API, which most providers offer.
var chatWire = wire{
	path:    "/v1/chat/completions",
	headers: bearer,
	request: chatRequest,
	decoder: func(say func(string)) decoder { return &chatDecoder{say: say} },
}

type object = map[string]any

func chatRequest(model, system string, tools []tool, history []message) any {
	messages := []object{{"role": "system", "content": system}}
	for _, m := range history {
		for _, r := range m.results {
			messages = append(messages, object{"role": "tool", "tool_call_id": r.id, "content": r.text})
		}
		if m.text == "" && len(m.calls) == 0 {
			continue
		}
		out := object{"role": m.role, "content": m.text}
		var calls []object
		for _, c := range m.calls {
			calls = append(calls, object{
				"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": string(c.object())},
			})
		}
		if calls != nil {
			out["tool_calls"] = calls
		}
		messages = append(messages, out)
	}
	var functions []object
	for _, t := range tools {
		function := object{"name": t.name, "description": t.description, "parameters": t.schema}
		functions = append(functions, object{"type": "function", "function": function})
	}
	return object{
		"model": model, "messages": messages, "tools": functions,
		"stream": true, "stream_options": object{"include_usage": true},
	}
}

type chatDecoder struct {
	say    func(string)
	text   strings.Builder
	calls  []*partialCall
	finish string
}

// partialCall is a call whose arguments arrive in pieces.
type partialCall struct {
	index    int
	id, name string
	args     []byte
}

func (p *partialCall) call() call { return call{p.id, p.name, json.RawMessage(bytes.Clone(p.args))} }

func (d *chatDecoder) event(data []byte) (bool, error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	if data == nil { // some providers end without the marker
		return d.finish != "", nil
	}
	var chunk struct {
		Error   json.RawMessage `json:"error"`
		Choices []struct {
			Delta struct {
				Content   string `json:"content"`
				ToolCalls []struct {
					Index    int    `json:"index"`
					ID       string `json:"id"`
					Function struct {
						Name      string `json:"name"`
						Arguments string `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"delta"`
			Finish string `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &chunk); err != nil {
		return false, err
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		return false, streamError(data)
	}
	for _, c := range chunk.Choices {
		if c.Delta.Content != "" {
			d.text.WriteString(c.Delta.Content)
			d.say(c.Delta.Content)
		}
		for _, t := range c.Delta.ToolCalls {
			p := d.at(t.Index)
			if t.ID != "" {
				p.id = t.ID
			}
			p.name += t.Function.Name
			p.args = append(p.args, t.Function.Arguments...)
		}
		if c.Finish != "" {
			d.finish = c.Finish
		}
	}
	return false, nil
}

func (d *chatDecoder) at(index int) *partialCall {
	for _, p := range d.calls {
		if p.index == index {
			return p
		}
	}
	p := &partialCall{index: index}
	d.calls = append(d.calls, p)
	return p
}

func (d *chatDecoder) reply() reply {
	r := reply{text: d.text.String(), stop: acp.StopEndTurn}
	for _, p := range d.calls {
		r.calls = append(r.calls, p.call())
	}
	switch d.finish {
	case "length":
		r.stop = acp.StopMaxTokens
	case "content_filter":
		r.stop = acp.StopRefusal
	}
	return r
}
