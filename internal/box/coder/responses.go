package coder

import (
	"encoding/json"
	"strings"

	"yardmaster/internal/box/acp"
)

// responsesWire is the responses API of OpenAI, used without its stored state.
var responsesWire = wire{
	path:    "/v1/responses",
	headers: bearer,
	request: responsesRequest,
	decoder: func(say func(string)) decoder { return &responsesDecoder{say: say} },
}

func responsesRequest(model, system string, tools []tool, history []message) any {
	var input []object
	for _, m := range history {
		for _, r := range m.results {
			input = append(input, object{"type": "function_call_output", "call_id": r.id, "output": r.text})
		}
		if m.text != "" {
			kind := "input_text"
			if m.role == assistant {
				kind = "output_text"
			}
			input = append(input, object{"type": "message", "role": m.role, "content": []object{{"type": kind, "text": m.text}}})
		}
		for _, c := range m.calls {
			input = append(input, object{
				"type": "function_call", "call_id": c.id, "name": c.name, "arguments": string(c.object()),
			})
		}
	}
	var offered []object
	for _, t := range tools {
		offered = append(offered, object{
			"type": "function", "name": t.name, "description": t.description, "parameters": t.schema, "strict": false,
		})
	}
	return object{"model": model, "instructions": system, "input": input, "tools": offered, "stream": true, "store": false}
}

type responsesDecoder struct {
	say   func(string)
	text  strings.Builder
	calls []call
	stop  string
}

func (d *responsesDecoder) event(data []byte) (bool, error) {
	if data == nil {
		return false, nil
	}
	var e struct {
		Type  string `json:"type"`
		Delta string `json:"delta"`
		Item  struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"item"`
		Code     string `json:"code"`
		Message  string `json:"message"`
		Response struct {
			Error      json.RawMessage `json:"error"`
			Incomplete struct {
				Reason string `json:"reason"`
			} `json:"incomplete_details"`
		} `json:"response"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "response.output_text.delta":
		d.text.WriteString(e.Delta)
		d.say(e.Delta)
	case "response.output_item.done":
		if e.Item.Type == "function_call" {
			d.calls = append(d.calls, call{e.Item.CallID, e.Item.Name, json.RawMessage(e.Item.Arguments)})
		}
	case "response.completed":
		return true, nil
	case "response.incomplete":
		d.stop = acp.StopMaxTokens
		if e.Response.Incomplete.Reason == "content_filter" {
			d.stop = acp.StopRefusal
		}
		return true, nil
	case "response.failed":
		return false, streamError([]byte(`{"error":` + string(e.Response.Error) + `}`))
	case "error":
		body, err := encode(object{"error": object{"code": e.Code, "message": e.Message}})
		if err != nil {
			return false, err
		}
		return false, streamError(body)
	}
	return false, nil
}

func (d *responsesDecoder) reply() reply {
	r := reply{text: d.text.String(), calls: d.calls, stop: acp.StopEndTurn}
	if d.stop != "" {
		r.stop = d.stop
	}
	return r
}
