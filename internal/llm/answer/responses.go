package answer

func responsesStop(reason string) Stop {
	switch reason {
	case "max_output_tokens":
		return Length
	case "content_filter":
		return Filtered
	}
	return None
}

// responsesEvent reads an event of the Responses API.
func (r *Reader) responsesEvent(v value) {
	m := v.pick("type", "output_index", "delta", "item", "response")
	n, _ := m[1].count()
	index := int(n)
	switch kind := m[0].str(); kind {
	case "response.output_text.delta":
		r.addText(m[2])
	case "response.refusal.delta":
		r.addRefusal(m[2])
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.think(index, m[2], nil, nil)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		r.begun = true
		if r.Keep {
			r.parts.call(index).give(m[2])
		}
	case "response.output_item.added":
		r.model = true
		if !m[3].get("type").is("message") {
			r.item(index, m[3])
		}
	case "response.output_item.done":
		if !m[3].get("type").is("message") { // its text has come as deltas
			r.item(index, m[3])
		}
	case "response.created", "response.in_progress":
		r.model = true
	case "response.completed", "response.incomplete", "response.failed":
		r.response(m[4], kind[len("response."):], !r.begun)
	}
}

// item reads an item of the output as far as it is known. What it says replaces what
// was put together before.
func (r *Reader) item(index int, v value) {
	m := v.pick("type", "content", "summary", "encrypted_content", "call_id", "name", "arguments", "input", "id")
	switch kind := m[0].str(); kind {
	case "message":
		m[1].each(func(_ int, c value) {
			p := c.pick("text", "refusal")
			r.addText(p[0])
			r.addRefusal(p[1])
		})
	case "reasoning":
		r.reasoning(index, m[1], m[2], m[3])
	case "function_call", "custom_tool_call":
		r.begun = true
		if !r.Keep {
			return
		}
		c := r.parts.call(index)
		c.ID, c.Name, c.args = m[4].str(), m[5].str(), nil
		c.give(m[6])
		c.give(m[7])
	case "web_search_call", "file_search_call", "code_interpreter_call":
		r.begun = true
		if r.Keep {
			c := r.parts.call(index)
			c.ID, c.Name, c.served = m[8].str(), kind, true
		}
	}
}

func (r *Reader) reasoning(index int, content, summary, encrypted value) {
	if r.Keep {
		r.parts.thought(index).Thought = Thought{}
	}
	for _, list := range []value{summary, content} {
		list.each(func(_ int, s value) { r.think(index, s.get("text"), nil, nil) })
	}
	r.think(index, nil, encrypted, nil)
}

// response reads a whole answer of the Responses API, with its status; items says
// whether its output counts, or has come already.
func (r *Reader) response(v value, status string, items bool) {
	m := v.pick("output", "error", "incomplete_details", "usage", "service_tier")
	r.model = true
	r.usage.served(m[4])
	r.usage.responsesUsage(m[3])
	if items {
		m[0].each(r.item)
	}
	switch status {
	case "completed":
		r.stop, r.reason, r.done = End, status, true
	case "incomplete":
		r.end(m[2].get("reason"), responsesStop)
		r.done = true
	case "failed":
		s := readError(append(append([]byte(`{"error":`), m[1]...), '}'))
		s.present = true
		r.said = &s
	}
}
