package answer

import "encoding/json"

func chatStop(reason string) Stop {
	switch reason {
	case "stop":
		return End
	case "length", "model_length":
		return Length
	case "tool_calls", "function_call":
		return ToolUse
	case "content_filter":
		return Filtered
	}
	return None
}

// chat reads a chunk or a whole answer of chat completions. Of several choices it
// keeps the first.
func (r *Reader) chat(v value) {
	m := v.pick("choices", "usage", "x_groq", "service_tier")
	r.usage.served(m[3])
	r.usage.chatUsage(m[1])
	if !m[1].object() {
		r.usage.chatUsage(m[2].get("usage"))
	}
	m[0].each(func(_ int, choice value) {
		r.model = true
		c := choice.pick("index", "delta", "message", "finish_reason")
		if n, ok := c[0].count(); ok && n != 0 {
			return
		}
		if !r.chatMessage(c[1]) {
			r.chatMessage(c[2])
		}
		if c[3].empty() {
			return
		}
		r.end(c[3], chatStop)
		r.done = true
		switch r.reason {
		case "insufficient_system_resource":
			r.said = &said{present: true, code: "overloaded"}
		case "error":
			if v.get("error").empty() {
				r.said = &said{present: true, code: "server_error"}
			}
		}
	})
}

// chatMessage reads a message, or a piece of one. It answers false for an empty one.
func (r *Reader) chatMessage(v value) bool {
	m := v.pick("content", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call")
	r.chatContent(m[0])
	r.addRefusal(m[1])
	thinking := m[2]
	if thinking.empty() { // some send both, with the same text
		thinking = m[3]
	}
	if !thinking.object() {
		r.think(0, thinking, nil, nil)
	}
	if m[5].object() {
		r.begun = true
		if r.Keep {
			r.chatFunction(r.parts.call(none), m[5])
		}
	}
	m[4].each(func(_ int, e value) {
		r.begun = true
		if r.Keep {
			r.chatCall(e)
		}
	})
	return m[0] != nil || !m[1].empty() || !thinking.empty() || m[4] != nil || m[5].object()
}

// chatContent reads content: a text, or a list of parts.
func (r *Reader) chatContent(v value) {
	if len(v) == 0 || v[0] != '[' {
		if len(v) > 0 && v[0] == '"' {
			r.addText(v)
		}
		return
	}
	v.each(func(_ int, part value) {
		p := part.pick("text", "thinking", "refusal")
		r.addText(p[0])
		r.addRefusal(p[2])
		p[1].each(func(_ int, t value) { r.think(0, t.get("text"), nil, nil) })
	})
}

// chatCall reads a tool call or a piece of one. Its index tells to which call a piece
// belongs, unless its id says otherwise; without an index the id decides, and without
// both the last goes on. A name behind whole arguments begins another call, because
// some servers give neither.
func (r *Reader) chatCall(v value) {
	m := v.pick("index", "id", "function")
	id, index := m[1].str(), none
	if n, ok := m[0].count(); ok {
		index = int(n)
	}
	f := m[2].pick("name", "arguments")
	for i := len(r.parts.calls) - 1; i >= 0; i-- {
		c := r.parts.calls[i]
		switch same := id == "" || c.ID == id || c.ID == ""; {
		case index != none && c.index != index:
			continue
		case index == none && id != "" && c.ID != id:
			continue
		case !same:
			continue
		case id == "" && c.ended(f[0], f[1]):
			// another call follows
		default:
			r.chatPiece(c, id, m[2])
			return
		}
		break
	}
	r.chatPiece(r.parts.add(index), id, m[2])
}

// ended tells whether a name and arguments without an id are of another call.
func (c *call) ended(name, args value) bool {
	return !name.empty() && c.Name != "" && json.Valid(c.args) && (!args.empty() || name.str() != c.Name)
}

func (r *Reader) chatPiece(c *call, id string, function value) {
	if id != "" {
		c.ID = id
	}
	r.chatFunction(c, function)
}

// chatFunction adds a name, which some servers repeat in each piece, and arguments.
func (r *Reader) chatFunction(c *call, v value) {
	m := v.pick("name", "arguments")
	if c.Name == "" {
		c.Name = m[0].str()
	}
	c.give(m[1])
}
