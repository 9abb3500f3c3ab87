package coder

import (
	"encoding/json"
	"strings"

	"yardmaster/internal/box/acp"
)

// messagesWire is the messages API of Anthropic.
var messagesWire = wire{
	path: "/v1/messages",
	headers: func(token string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + token, "X-Api-Key": token, "Anthropic-Version": "2023-06-01"}
	},
	request: messagesRequest,
	decoder: func(say func(string)) decoder { return &messagesDecoder{say: say} },
}

func messagesRequest(model, system string, tools []tool, history []message) any {
	var messages []object
	for _, m := range history {
		var content []object
		for _, r := range m.results {
			content = append(content, object{"type": "tool_result", "tool_use_id": r.id, "content": r.text, "is_error": r.failed})
		}
		if m.text != "" {
			content = append(content, object{"type": "text", "text": m.text})
		}
		for _, c := range m.calls {
			content = append(content, object{"type": "tool_use", "id": c.id, "name": c.name, "input": c.object()})
		}
		if content != nil {
			messages = append(messages, object{"role": m.role, "content": content})
		}
	}
	var offered []object
	for _, t := range tools {
		offered = append(offered, object{"name": t.name, "description": t.description, "input_schema": t.schema})
	}
	return object{"model": model, "max_tokens": maxOutput, "system": system, "messages": messages, "tools": offered, "stream": true}
}

type messagesDecoder struct {
	say   func(string)
	text  strings.Builder
	calls []*partialCall
	stop  string
}

func (d *messagesDecoder) event(data []byte) (bool, error) {
	if data == nil {
		return false, nil
	}
	var e struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block struct {
			Type string `json:"type"`
			ID   string `json:"id"`
			Name string `json:"name"`
			Text string `json:"text"`
		} `json:"content_block"`
		Delta struct {
			Text string `json:"text"`
			JSON string `json:"partial_json"`
			Stop string `json:"stop_reason"`
		} `json:"delta"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "error":
		return false, streamError(data)
	case "content_block_start":
		if e.Block.Type == "tool_use" {
			d.calls = append(d.calls, &partialCall{index: e.Index, id: e.Block.ID, name: e.Block.Name})
		}
		d.write(e.Block.Text)
	case "content_block_delta":
		d.write(e.Delta.Text)
		for _, p := range d.calls {
			if p.index == e.Index {
				p.args = append(p.args, e.Delta.JSON...)
			}
		}
	case "message_delta":
		if e.Delta.Stop != "" {
			d.stop = e.Delta.Stop
		}
	case "message_stop":
		return true, nil
	}
	return false, nil
}

func (d *messagesDecoder) write(text string) {
	if text != "" {
		d.text.WriteString(text)
		d.say(text)
	}
}

func (d *messagesDecoder) reply() reply {
	r := reply{text: d.text.String(), stop: acp.StopEndTurn}
	for _, p := range d.calls {
		r.calls = append(r.calls, p.call())
	}
	switch d.stop {
	case "max_tokens":
		r.stop = acp.StopMaxTokens
	case "refusal":
		r.stop = acp.StopRefusal
	}
	return r
}
