package coder

import "yardmaster/internal/llm/answer"

// chatWire is the chat completions API, which most providers offer.
var chatWire = wire{
	api:     answer.Chat,
	path:    "/v1/chat/completions",
	headers: bearer,
	request: chatRequest,
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
