package coder

import "yardmaster/internal/llm/answer"

// messagesWire is the messages API of Anthropic.
var messagesWire = wire{
	api:  answer.Messages,
	path: "/v1/messages",
	headers: func(token string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + token, "X-Api-Key": token, "Anthropic-Version": "2023-06-01"}
	},
	request: messagesRequest,
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
