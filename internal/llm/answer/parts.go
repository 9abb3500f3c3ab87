package answer

import (
	"encoding/json"
	"strings"
)

// parts are the parts of an answer as they come.
type parts struct {
	text, refusal strings.Builder
	thoughts      []*thought
	calls         []*call
}

type thought struct {
	Thought
	index int
}

// call is a tool call that is still coming.
type call struct {
	Tool
	index  int // in the answer's numbering; none: it has none
	args   []byte
	served bool
}

const none = -1

// begin notes content: a value that is not empty.
func (r *Reader) begin(v value) bool {
	r.begun = r.begun || !v.empty()
	return !v.empty() && (r.Keep || r.Text != nil)
}

func (r *Reader) addText(v value) {
	if r.begin(v) {
		r.write(&r.parts.text, v.str())
	}
}

func (r *Reader) addRefusal(v value) {
	if r.begin(v) {
		r.write(&r.parts.refusal, v.str())
	}
}

func (r *Reader) write(to *strings.Builder, text string) {
	if r.Keep {
		to.WriteString(text)
	}
	if r.Text != nil && text != "" {
		r.Text(text)
	}
}

// thought is the piece of thinking at an index of the answer.
func (p *parts) thought(index int) *thought {
	for _, t := range p.thoughts {
		if t.index == index {
			return t
		}
	}
	t := &thought{index: index}
	p.thoughts = append(p.thoughts, t)
	return t
}

// think adds to a piece of thinking.
func (r *Reader) think(index int, text, signature, redacted value) {
	for _, v := range []value{text, signature, redacted} {
		r.begun = r.begun || !v.empty()
	}
	if !r.Keep || text.empty() && signature.empty() && redacted.empty() {
		return
	}
	t := r.parts.thought(index)
	t.Text += text.str()
	t.Signature += signature.str()
	t.Redacted += redacted.str()
}

// call is the call at an index of the answer, or a new one.
func (p *parts) call(index int) *call {
	for _, c := range p.calls {
		if c.index == index {
			return c
		}
	}
	return p.add(index)
}

func (p *parts) add(index int) *call {
	c := &call{index: index}
	p.calls = append(p.calls, c)
	return c
}

// give adds arguments: a piece of a text, or (some servers) the object itself.
func (c *call) give(v value) {
	if len(v) > 0 && v[0] == '"' {
		c.args = append(c.args, v.str()...)
	} else if !v.empty() {
		c.args = append(c.args, v...)
	}
}

// finish puts the arguments of the calls in place.
func (p *parts) finish() {
	for _, c := range p.calls {
		if c.Arguments = c.args; strings.TrimSpace(string(c.args)) == "" {
			c.Arguments = json.RawMessage("{}")
		}
	}
}

// callable tells whether there is a call for the caller to run.
func (p *parts) callable() bool {
	for _, c := range p.calls {
		if !c.served {
			return true
		}
	}
	return false
}

func (p *parts) into(a *Answer) {
	for _, t := range p.thoughts {
		if t.Thought != (Thought{}) {
			a.Thinking = append(a.Thinking, t.Thought)
		}
	}
	for _, c := range p.calls {
		if c.served {
			a.Served = append(a.Served, c.Tool)
		} else {
			a.Tools = append(a.Tools, c.Tool)
		}
	}
}
