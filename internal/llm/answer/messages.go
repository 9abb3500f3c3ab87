package answer

func messagesStop(reason string) Stop {
	switch reason {
	case "end_turn":
		return End
	case "max_tokens":
		return Length
	case "stop_sequence":
		return StopSequence
	case "tool_use":
		return ToolUse
	case "pause_turn":
		return Paused
	case "refusal":
		return Refused
	case "model_context_window_exceeded":
		return Context
	}
	return None
}

// message reads a whole answer of the Messages API.
func (r *Reader) message(v value) {
	m := v.pick("type", "content", "stop_reason", "usage")
	if !m[0].is("message") && (m[0] != nil || len(m[1]) == 0 || m[1][0] != '[') {
		return
	}
	m[1].each(r.block)
	r.usage.messagesUsage(m[3])
	r.end(m[2], messagesStop)
	r.model, r.done = true, true
}

// block reads a content block, which in a stream has only its beginning.
func (r *Reader) block(index int, v value) {
	m := v.pick("type", "text", "thinking", "signature", "data", "id", "name", "input")
	switch served := m[0].is("server_tool_use"); {
	case m[0].is("text"):
		r.addText(m[1])
	case m[0].is("thinking"):
		r.think(index, m[2], m[3], nil)
	case m[0].is("redacted_thinking"):
		r.think(index, nil, nil, m[4])
	case m[0].is("tool_use"), served:
		r.begun = true
		if r.Keep {
			c := r.parts.call(index)
			c.ID, c.Name, c.served = m[5].str(), m[6].str(), served
			c.give(m[7])
		}
	}
}

// messagesEvent reads an event of the Messages API.
func (r *Reader) messagesEvent(v value) {
	m := v.pick("type", "index", "delta", "usage", "message", "content_block")
	n, _ := m[1].count()
	index := int(n)
	switch {
	case m[0].is("content_block_delta"):
		d := m[2].pick("text", "thinking", "signature", "partial_json")
		r.addText(d[0])
		r.think(index, d[1], d[2], nil)
		if r.Keep && !d[3].empty() {
			r.parts.call(index).give(d[3])
		}
	case m[0].is("content_block_start"):
		r.block(index, m[5])
	case m[0].is("message_start"):
		r.model = true
		r.usage.messagesUsage(m[4].get("usage"))
	case m[0].is("message_delta"):
		r.usage.messagesUsage(m[3])
		r.end(m[2].get("stop_reason"), messagesStop)
	case m[0].is("message_stop"):
		r.done = true
	case m[0].is("message"): // a whole answer as an event
		r.message(v)
	}
}
