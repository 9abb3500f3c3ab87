package spool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// text is the state of what the agent says.
type text struct {
	kind    string         // of the pieces below
	scrub   io.WriteCloser // leads to clean; nil at the beginning of a text
	clean   bytes.Buffer   // not yet spooled
	timer   *time.Timer
	spooled int64 // bytes of agent updates in the spool, ever
	capped  bool
}

// chunk is the only kind of session update that is coalesced.
type chunk struct {
	Kind    string `json:"sessionUpdate"`
	Content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

func (c chunk) coalesces() bool {
	return (c.Kind == "agent_message_chunk" || c.Kind == "agent_thought_chunk") && c.Content.Type == "text"
}

// Update adds what an agent sent as a session update. Consecutive pieces of
// text become one event. It never waits for the disk to be synced, and returns
// nothing: an update that finds no room is dropped, and the drop is recorded.
func (s *Spool) Update(raw json.RawMessage) {
	var c chunk
	err := json.Unmarshal(raw, &c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || !c.coalesces() {
		s.flush(true)
		s.update(raw)
		return
	}
	if c.Kind != s.text.kind {
		s.flush(true)
		s.text.kind = c.Kind
	}
	if s.text.scrub == nil {
		s.text.scrub = s.o.Scrubber.Writer(&s.text.clean)
	}
	_, _ = io.WriteString(s.text.scrub, c.Content.Text) // a buffer takes everything
	if s.text.clean.Len() >= s.o.TextEvent {
		s.flush(false)
	}
	s.later()
}

// later has what is pending written when the window is over.
func (s *Spool) later() {
	if s.text.timer != nil || s.text.clean.Len() == 0 {
		return
	}
	s.text.timer = time.AfterFunc(s.o.TextWindow, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.text.timer = nil
		s.flush(false)
	})
}

// flush writes what is clean. Unless it is the end of the text, what may be the
// beginning of a secret waits for the rest. The caller holds mu.
func (s *Spool) flush(end bool) {
	if end && s.text.scrub != nil {
		_ = s.text.scrub.Close() // a buffer takes everything
		s.text.scrub = nil
	}
	for ready := s.text.clean.Bytes(); len(ready) > 0; {
		n := cut(ready, s.o.TextEvent)
		c := chunk{Kind: s.text.kind}
		c.Content.Type, c.Content.Text = "text", string(ready[:n])
		if raw, err := json.Marshal(c); err == nil { // strings only: it cannot fail
			s.update(raw)
		}
		ready = ready[n:]
	}
	s.text.clean.Reset()
	if end && s.text.timer != nil {
		s.text.timer.Stop()
		s.text.timer = nil
	}
}

// cut is the length of the first piece of b, at most limit, that ends between
// characters.
func cut(b []byte, limit int) int {
	if len(b) <= limit {
		return len(b)
	}
	for n := limit; n > limit-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(b[n]) {
			return n
		}
	}
	return limit
}

// update writes one agent update within the limits. The caller holds mu.
func (s *Spool) update(raw json.RawMessage) {
	if s.text.capped {
		return
	}
	raw = s.o.Scrubber.Bytes(raw)
	short := raw
	if len(raw) > s.o.EventBytes {
		short = shorten(raw, s.o.EventBytes)
	}
	if s.text.spooled+int64(len(short)) > s.o.TextTotal {
		s.text.capped = true
		s.truncated(Truncated{Reason: reasonCap})
		return
	}
	s.writeText(short)
	if lost := len(raw) - len(short); lost > 0 {
		s.truncated(Truncated{Reason: "event_limit", Bytes: int64(lost)})
	}
}

// shorten cuts the long strings of an update until it fits, so that a reader
// still finds the update it knows: its kind, its ids, the beginning of each
// text.
func shorten(raw json.RawMessage, limit int) json.RawMessage {
	var v any
	if err := json.Unmarshal(raw, &v); err == nil {
		for longest := limit / 2; longest >= 64; longest /= 4 {
			if out, err := json.Marshal(shortened(v, longest)); err == nil && len(out) <= limit {
				return out
			}
		}
	}
	var kind struct {
		Kind string `json:"sessionUpdate"`
		ID   string `json:"toolCallId,omitempty"`
	}
	// Whatever cannot be read is replaced by what is known of it: nothing.
	_ = json.Unmarshal(raw, &kind)
	kind.Kind, kind.ID = kind.Kind[:cut([]byte(kind.Kind), 256)], kind.ID[:cut([]byte(kind.ID), 256)]
	out, err := json.Marshal(kind)
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}

func shortened(v any, longest int) any {
	switch v := v.(type) {
	case string:
		if n := cut([]byte(v), longest); n < len(v) {
			return v[:n] + fmt.Sprintf("\n[%d bytes cut]", len(v)-n)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = shortened(v[i], longest)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = shortened(v[k], longest)
		}
		return out
	}
	return v
}
