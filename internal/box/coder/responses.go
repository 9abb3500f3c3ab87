package coder

import "yardmaster/internal/llm/answer"

// responsesWire is the responses API of OpenAI, used without its stored state.
var responsesWire = wire{
	api:     answer.Responses,
	path:    "/v1/responses",
	headers: bearer,
	request: responsesRequest,
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
