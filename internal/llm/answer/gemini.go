package answer

func geminiStop(reason string) Stop {
	switch reason {
	case "STOP":
		return End
	case "MAX_TOKENS":
		return Length
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY":
		return Filtered
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return BadTool
	}
	return None
}

// gemini reads an event or a whole answer of Google's API. Of several candidates it
// keeps the first.
func (r *Reader) gemini(v value) {
	m := v.pick("candidates", "promptFeedback", "usageMetadata")
	r.usage.geminiUsage(m[2])
	if reason := m[1].get("blockReason"); !reason.empty() {
		r.model, r.done = true, true
		r.stop, r.reason = Filtered, reason.str()
	}
	m[0].each(func(_ int, candidate value) {
		r.model = true
		c := candidate.pick("index", "content", "finishReason")
		if n, ok := c[0].count(); ok && n != 0 {
			return
		}
		c[1].get("parts").each(r.geminiPart)
		if !c[2].empty() {
			r.end(c[2], geminiStop)
			r.done = true
		}
	})
}

func (r *Reader) geminiPart(_ int, v value) {
	p := v.pick("text", "thought", "thoughtSignature", "functionCall")
	switch {
	case p[3].object():
		r.begun = true
		if !r.Keep {
			return
		}
		f := p[3].pick("id", "name", "args")
		c := r.parts.add(none)
		c.ID, c.Name, c.Signature = f[0].str(), f[1].str(), p[2].str()
		c.give(f[2])
	case string(p[1]) == "true":
		r.think(0, p[0], nil, nil)
	default:
		r.addText(p[0])
		r.begun = r.begun || !p[2].empty()
		if r.Keep && !p[2].empty() {
			r.parts.thought(0).Signature = p[2].str()
		}
	}
}
