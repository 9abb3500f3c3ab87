package spool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/protocol"
)

// text is the state of the agent's output.
type text struct {
	kind    string         // kind of the pieces below
	scrub   io.WriteCloser // writes to clean; nil at the beginning of a text
	clean   bytes.Buffer   // not yet spooled
	timer   *time.Timer
	spooled int64 // bytes of agent updates written to the spool in all
	capped  bool
}

// chunk is the kind of session update that is coalesced.
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

// Update adds a session update of the agent. Consecutive pieces of text become one
// event. Update does not wait for a sync and returns no error: on a full disk it
// drops the update and records that.
func (s *Spool) Update(raw json.RawMessage) {
	var c chunk
	err := json.Unmarshal(raw, &c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.toolUpdate(raw) {
		return
	}
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
	_, _ = io.WriteString(s.text.scrub, c.Content.Text) // writing to a buffer never fails
	if s.text.clean.Len() >= s.o.TextEvent {
		s.flush(false)
	}
	s.flushLater()
}

// flushLater makes a timer write the pending text when the window ends.
func (s *Spool) flushLater() {
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

// flush writes the scrubbed text. Unless end is set, a possible beginning of a
// secret waits for the rest. The caller holds mu.
func (s *Spool) flush(end bool) {
	if end && s.text.scrub != nil {
		_ = s.text.scrub.Close() // writing to a buffer never fails
		s.text.scrub = nil
	}
	for ready := s.text.clean.Bytes(); len(ready) > 0; {
		n := cut(ready, s.o.TextEvent)
		c := chunk{Kind: s.text.kind}
		c.Content.Type, c.Content.Text = "text", string(ready[:n])
		if raw, err := json.Marshal(c); err == nil { // never fails, because these are strings
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

// cut returns the length of the first piece of b, at most limit, that ends between
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

// Permission adds a permission request of the agent, within the limits of updates.
func (s *Spool) Permission(raw json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush(true)
	s.flushLive(false)
	s.writeFromAgent(protocol.EventPermission, raw)
}

// update writes one agent update within the limits. The caller holds mu.
func (s *Spool) update(raw json.RawMessage) { s.writeFromAgent(protocol.EventUpdate, raw) }

// writeFromAgent writes an event from the agent within the limits. The caller holds mu.
func (s *Spool) writeFromAgent(kind string, raw json.RawMessage) {
	if s.text.capped {
		return
	}
	raw = s.o.Scrubber.Bytes(normalize(raw))
	short := raw
	if len(raw) > s.o.EventBytes {
		short = shorten(raw, s.o.EventBytes)
	}
	if s.text.spooled+charge(short) > s.o.TextTotal {
		s.text.capped = true
		s.truncated(Truncated{Reason: reasonCap})
		return
	}
	s.writeText(kind, short)
	if lost := len(raw) - len(short); lost > 0 {
		s.truncated(Truncated{Reason: "event_limit", Bytes: int64(lost)})
	}
}

// leastCharge limits the number of tiny updates that an agent can write.
const leastCharge = 128

// charge returns how many bytes an update counts for the cap.
func charge(data json.RawMessage) int64 { return int64(max(len(data), leastCharge)) }

// maxNesting is deeper than the updates of all known agents.
const maxNesting = 256

// normalize returns an agent's JSON in a form that every reader accepts: UTF-8, unique
// names in an object, limited nesting. An event that cannot be sent would block all
// events after it.
func normalize(raw json.RawMessage) json.RawMessage {
	if jsontext.Value(raw).IsValid() && nesting(raw) <= maxNesting {
		return raw
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) == nil {
		if out, err := json.Marshal(shortened(v, len(raw), maxNesting/2)); err == nil {
			return out
		}
	}
	return json.RawMessage("{}")
}

// nesting returns the depth of valid JSON.
func nesting(raw json.RawMessage) (deepest int) {
	for d := jsontext.NewDecoder(bytes.NewReader(raw)); ; {
		if _, err := d.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, d.StackDepth())
	}
}

// shorten cuts the long strings of an update until it fits, so that readers still
// recognise the update: its kind, its ids and the beginning of each text.
func shorten(raw json.RawMessage, limit int) json.RawMessage {
	var v any
	if err := json.Unmarshal(raw, &v); err == nil {
		for longest := limit / 2; longest >= 64; longest /= 4 {
			if out, err := json.Marshal(shortened(v, longest, maxNesting)); err == nil && len(out) <= limit {
				return out
			}
		}
	}
	var kind struct {
		Kind string `json:"sessionUpdate"`
		ID   string `json:"toolCallId,omitempty"`
	}
	// JSON that cannot be read is replaced by an empty kind and id.
	_ = json.Unmarshal(raw, &kind)
	kind.Kind, kind.ID = kind.Kind[:cut([]byte(kind.Kind), 256)], kind.ID[:cut([]byte(kind.ID), 256)]
	out, err := json.Marshal(kind)
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}

// shortened cuts strings to longest bytes, and drops values that are nested deeper
// than depth.
func shortened(v any, longest, depth int) any {
	if depth == 0 {
		return nil
	}
	switch v := v.(type) {
	case string:
		if n := cut([]byte(v), longest); n < len(v) {
			return v[:n] + fmt.Sprintf("\n[%d bytes cut]", len(v)-n)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = shortened(v[i], longest, depth-1)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = shortened(v[k], longest, depth-1)
		}
		return out
	}
	return v
}
