package sink

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"yardmaster/internal/llm"
)

type (
	object = map[string]any
	list   = []any
)

// message is a message as the semantic conventions for generative AI of OpenTelemetry have it
// (gen_ai.input.messages, gen_ai.output.messages).
type message struct {
	Role   string `json:"role"`
	Parts  list   `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

// conversation is what a request says.
type conversation struct {
	system list // parts
	input  []message
}

// asked reads the conversation of a request, of which the end may be missing. What it does not
// know is named and left out, such as images: nobody finds a secret in them.
func asked(api llm.API, body []byte) (c conversation) {
	doc, _ := beginning(body).(object)
	switch api {
	case llm.Messages:
		c.system = parts(doc["system"])
		c.add(doc["messages"], "content")
	case llm.Chat:
		c.add(doc["messages"], "content")
	case llm.Responses:
		c.system = parts(doc["instructions"])
		if text, ok := doc["input"].(string); ok {
			c.input = append(c.input, message{Role: "user", Parts: parts(text)})
		}
		c.add(doc["input"], "content")
	case llm.Gemini:
		for _, name := range []string{"systemInstruction", "system_instruction"} {
			if of, ok := doc[name].(object); ok {
				c.system = parts(of["parts"])
			}
		}
		c.add(doc["contents"], "parts")
	}
	return c
}

// add adds messages, whose parts are the member of that name.
func (c *conversation) add(messages any, member string) {
	all, _ := messages.(list)
	for _, one := range all {
		m, ok := one.(object)
		if !ok {
			continue
		}
		out := message{Role: word(m, "role"), Parts: parts(m[member])}
		switch {
		case out.Role == "" && m[member] == nil: // an item of the API Responses that is no message
			out.Role, out.Parts = "assistant", list{part(m)}
			if kind := word(m, "type"); kind == "function_call_output" || kind == "custom_tool_call_output" {
				out.Role = "tool"
			}
		case out.Role == "tool":
			out.Parts = list{object{"type": "tool_call_response", "id": word(m, "tool_call_id"), "response": inner(m[member])}}
		}
		if text := word(m, "reasoning_content"); text != "" {
			out.Parts = append(list{object{"type": "reasoning", "content": text}}, out.Parts...)
		}
		calls, _ := m["tool_calls"].(list)
		for _, one := range calls {
			if call, ok := one.(object); ok {
				function, _ := call["function"].(object)
				out.Parts = append(out.Parts, toolCall(word(call, "id"), function["name"], function["arguments"]))
			}
		}
		c.input = append(c.input, out)
	}
}

// parts reads the content of a message: a text, or a list of parts.
func parts(v any) list {
	out := list{}
	switch v := v.(type) {
	case string:
		out = append(out, part(v))
	case list:
		for _, one := range v {
			out = append(out, part(one))
		}
	}
	return out
}

// part reads a part of a message of any API.
func part(v any) object {
	if text, ok := v.(string); ok {
		return object{"type": "text", "content": text}
	}
	m, _ := v.(object)
	kind := word(m, "type")
	if text, ok := m["text"].(string); ok {
		if thought, _ := m["thought"].(bool); thought {
			return object{"type": "reasoning", "content": text}
		}
		return object{"type": "text", "content": text}
	}
	call, _ := m["functionCall"].(object)
	response, _ := m["functionResponse"].(object)
	switch {
	case kind == "thinking":
		return object{"type": "reasoning", "content": word(m, "thinking")}
	case kind == "reasoning":
		return object{"type": "reasoning", "content": texts(m["summary"])}
	case kind == "refusal":
		return object{"type": "text", "content": word(m, "refusal")}
	case kind == "tool_use", kind == "server_tool_use":
		return toolCall(word(m, "id"), m["name"], m["input"])
	case kind == "function_call":
		return toolCall(word(m, "call_id"), m["name"], m["arguments"])
	case kind == "custom_tool_call":
		return toolCall(word(m, "call_id"), m["name"], m["input"])
	case call != nil:
		return toolCall(word(call, "id"), call["name"], call["args"])
	case kind == "tool_result":
		return object{"type": "tool_call_response", "id": word(m, "tool_use_id"), "response": inner(m["content"])}
	case kind == "function_call_output", kind == "custom_tool_call_output":
		return object{"type": "tool_call_response", "id": word(m, "call_id"), "response": inner(m["output"])}
	case response != nil:
		return object{"type": "tool_call_response", "id": word(response, "id"), "response": response["response"]}
	case kind == "":
		kind = "other"
	}
	return object{"type": kind}
}

func toolCall(id string, name, arguments any) object {
	if text, ok := arguments.(string); ok {
		if v := whole([]byte(text)); v != nil {
			arguments = v
		}
	}
	return object{"type": "tool_call", "id": id, "name": name, "arguments": arguments}
}

// inner reads the content of a tool's answer, which may have parts itself.
func inner(v any) any {
	if all, ok := v.(list); ok {
		return parts(all)
	}
	return v
}

// texts are the texts of parts, one after another.
func texts(v any) (all string) {
	for _, one := range parts(v) {
		all += word(one.(object), "content")
	}
	return all
}

func word(m object, name string) string {
	s, _ := m[name].(string)
	return s
}

// whole decodes a JSON object; nil if it is none.
func whole(text []byte) object {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v object
	if d.Decode(&v) != nil || d.More() {
		return nil
	}
	return v
}

// maxDepth is how deep a value may lie within others; deeper ones are left out.
const maxDepth = 100

// beginning decodes as much of a JSON value as there is: the members and elements that are
// whole.
func beginning(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, _ := next(d, 0)
	return v
}

// next decodes the next value as far as it goes; err tells that its end is missing.
func next(d *json.Decoder, depth int) (v any, err error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth > maxDepth {
		return nil, io.ErrUnexpectedEOF
	}
	o, l := object{}, list{}
	for d.More() {
		name := ""
		if delim == '{' {
			if token, err = d.Token(); err != nil {
				break
			}
			name, _ = token.(string)
		}
		var element any
		if element, err = next(d, depth+1); element != nil || err == nil {
			if o[name] = element; delim == '[' {
				l = append(l, element)
			}
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		_, err = d.Token() // the end
	}
	if delim == '[' {
		return slices.Clip(l), err
	}
	return o, err
}
