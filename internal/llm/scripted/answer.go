package scripted

// writeChat answers in the form of /v1/chat/completions.
func writeChat(s *stream, a *answer) {
	prompt := a.usage.Input + a.usage.CacheRead + a.usage.CacheWrite
	usage := object{"prompt_tokens": prompt, "completion_tokens": a.usage.Output, "total_tokens": prompt + a.usage.Output,
		"prompt_tokens_details": object{"cached_tokens": a.usage.CacheRead}}
	finish := "stop"
	if a.call != nil {
		finish = "tool_calls"
	}
	if !a.stream {
		message := object{"role": "assistant", "content": a.text}
		if a.call != nil {
			message["tool_calls"] = []object{{"id": a.id("call_"), "type": "function",
				"function": object{"name": a.call.tool.name, "arguments": a.call.arguments()}}}
		}
		document(s.w, object{"id": a.id("chatcmpl-"), "object": "chat.completion", "created": created, "model": a.model,
			"choices": []object{{"index": 0, "message": message, "finish_reason": finish}}, "usage": usage})
		return
	}
	chunk := func(choices []object) object {
		return object{"id": a.id("chatcmpl-"), "object": "chat.completion.chunk", "created": created, "model": a.model, "choices": choices}
	}
	delta := func(d object, finish any) { s.data(chunk([]object{{"index": 0, "delta": d, "finish_reason": finish}})) }
	delta(object{"role": "assistant", "content": ""}, nil)
	for _, piece := range a.pieces() {
		delta(object{"content": piece}, nil)
		if !wait(s.r, a.slow) {
			return
		}
	}
	if a.call != nil {
		delta(object{"tool_calls": []object{{"index": 0, "id": a.id("call_"), "type": "function",
			"function": object{"name": a.call.tool.name, "arguments": ""}}}}, nil)
		delta(object{"tool_calls": []object{{"index": 0, "function": object{"arguments": a.call.arguments()}}}}, nil)
	}
	delta(object{}, finish)
	last := chunk([]object{})
	last["usage"] = usage
	s.data(last)
	s.raw("data: [DONE]\n\n")
}

// writeMessages answers in the form of /v1/messages.
func writeMessages(s *stream, a *answer) {
	usage := object{"input_tokens": a.usage.Input, "output_tokens": a.usage.Output,
		"cache_read_input_tokens": a.usage.CacheRead, "cache_creation_input_tokens": a.usage.CacheWrite}
	stop := "end_turn"
	if a.call != nil {
		stop = "tool_use"
	}
	message := object{"id": a.id("msg_"), "type": "message", "role": "assistant", "model": a.model, "stop_sequence": nil}
	if !a.stream {
		content := []object{}
		if a.text != "" {
			content = append(content, object{"type": "text", "text": a.text})
		}
		if a.call != nil {
			content = append(content, object{"type": "tool_use", "id": a.id("toolu_"), "name": a.call.tool.name, "input": a.call.args})
		}
		message["content"], message["stop_reason"], message["usage"] = content, stop, usage
		document(s.w, message)
		return
	}
	message["content"], message["stop_reason"] = []object{}, nil
	message["usage"] = object{"input_tokens": a.usage.Input, "output_tokens": 1,
		"cache_read_input_tokens": a.usage.CacheRead, "cache_creation_input_tokens": a.usage.CacheWrite}
	s.event("message_start", object{"message": message})
	index := 0
	if a.text != "" {
		s.event("content_block_start", object{"index": index, "content_block": object{"type": "text", "text": ""}})
		for _, piece := range a.pieces() {
			s.event("content_block_delta", object{"index": index, "delta": object{"type": "text_delta", "text": piece}})
			if !wait(s.r, a.slow) {
				return
			}
		}
		s.event("content_block_stop", object{"index": index})
		index++
	}
	if a.call != nil {
		s.event("content_block_start", object{"index": index, "content_block": object{
			"type": "tool_use", "id": a.id("toolu_"), "name": a.call.tool.name, "input": object{}}})
		s.event("content_block_delta", object{"index": index,
			"delta": object{"type": "input_json_delta", "partial_json": a.call.arguments()}})
		s.event("content_block_stop", object{"index": index})
	}
	s.event("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil},
		"usage": object{"output_tokens": a.usage.Output}})
	s.event("message_stop", object{})
}

// writeResponses answers in the form of /v1/responses.
func writeResponses(s *stream, a *answer) {
	prompt := a.usage.Input + a.usage.CacheRead + a.usage.CacheWrite
	response := func(status string, output []object) object {
		r := object{"id": a.id("resp_"), "object": "response", "created_at": created, "status": status, "model": a.model,
			"output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}, "error": nil, "incomplete_details": nil}
		if status == "completed" {
			r["usage"] = object{"input_tokens": prompt, "input_tokens_details": object{"cached_tokens": a.usage.CacheRead},
				"output_tokens": a.usage.Output, "output_tokens_details": object{"reasoning_tokens": 0},
				"total_tokens": prompt + a.usage.Output}
		}
		return r
	}
	part := object{"type": "output_text", "text": a.text, "annotations": []any{}}
	said := object{"type": "message", "id": a.id("msg_"), "role": "assistant", "status": "completed", "content": []object{part}}
	items := []object{}
	if a.text != "" {
		items = append(items, said)
	}
	if a.call != nil {
		items = append(items, a.call.item(a))
	}
	if !a.stream {
		document(s.w, response("completed", items))
		return
	}
	sequence := 0
	emit := func(name string, v object) {
		v["sequence_number"] = sequence
		sequence++
		s.event(name, v)
	}
	emit("response.created", object{"response": response("in_progress", []object{})})
	emit("response.in_progress", object{"response": response("in_progress", []object{})})
	for i, item := range items {
		at := func(more object) object {
			more["item_id"], more["output_index"] = item["id"], i
			return more
		}
		begun := object{}
		for k, v := range item {
			begun[k] = v
		}
		begun["status"] = "in_progress"
		switch item["type"] {
		case "message":
			begun["content"] = []any{}
			emit("response.output_item.added", object{"output_index": i, "item": begun})
			emit("response.content_part.added",
				at(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
			for _, piece := range a.pieces() {
				emit("response.output_text.delta", at(object{"content_index": 0, "delta": piece}))
				if !wait(s.r, a.slow) {
					return
				}
			}
			emit("response.output_text.done", at(object{"content_index": 0, "text": a.text}))
			emit("response.content_part.done", at(object{"content_index": 0, "part": part}))
		case "function_call":
			begun["arguments"] = ""
			emit("response.output_item.added", object{"output_index": i, "item": begun})
			emit("response.function_call_arguments.delta", at(object{"delta": item["arguments"]}))
			emit("response.function_call_arguments.done", at(object{"arguments": item["arguments"]}))
		case "custom_tool_call":
			begun["input"] = ""
			emit("response.output_item.added", object{"output_index": i, "item": begun})
			emit("response.custom_tool_call_input.delta", at(object{"delta": item["input"]}))
			emit("response.custom_tool_call_input.done", at(object{"input": item["input"]}))
		}
		emit("response.output_item.done", object{"output_index": i, "item": item})
	}
	emit("response.completed", object{"response": response("completed", items)})
}

// item is the call as an item of a response.
func (c *call) item(a *answer) object {
	item := object{"id": a.id("fc_"), "call_id": a.id("call_"), "name": c.tool.name, "status": "completed"}
	if c.tool.freeform {
		item["type"], item["input"] = "custom_tool_call", c.text
		return item
	}
	item["type"], item["arguments"] = "function_call", c.arguments()
	if c.tool.namespace != "" {
		item["namespace"] = c.tool.namespace
	}
	return item
}
