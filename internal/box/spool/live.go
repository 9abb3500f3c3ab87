package spool

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// The output of a running tool arrives while the tool runs. Agents send it in
// pieces (terminal_output_delta) or repeat all of it each time. The spool stores
// pieces, gathered for a moment and scrubbed as one text, so that a secret that
// spans two pieces is not written. The result of the tool contains the whole
// output, or its ends, so the pieces may be cut short.
const (
	liveWindow = 250 * time.Millisecond
	livePiece  = 16 << 10 // bytes that are written before the window ends
	liveCall   = 32 << 10 // limit for one tool call, in bytes
	liveShare  = 4        // the pieces may take a fourth of TextTotal
	liveCalls  = 32       // tool calls at a time

	// The window of a tool that runs for long grows by liveWindow with every liveSlower
	// pieces, up to liveSlowest windows: each piece is an event that is stored, and a
	// build of an hour would store 14,000.
	liveSlower  = 20
	liveSlowest = 8

	liveMore = "\n[more comes with the result]\n"
)

// live is the output of the running tools.
type live struct {
	calls []*toolCall
	timer *time.Timer
	spent int64 // bytes of the events with such output
}

// toolCall is one tool call that produces output.
type toolCall struct {
	id    string
	scrub io.WriteCloser // writes to clean
	clean bytes.Buffer   // not yet spooled
	taken int            // bytes so far
	put   int            // pieces so far
	cut   bool           // the rest is dropped
	seen  string         // the output so far of an agent that repeats all of it
	rest  string         // the rest of the update when it was last written
}

type fields = map[string]json.RawMessage

// toolUpdate handles the output in an update of a running tool. It returns false
// for an update that is to be written as it is. The caller holds mu.
func (s *Spool) toolUpdate(raw json.RawMessage) bool {
	var u struct {
		Kind    string          `json:"sessionUpdate"`
		ID      string          `json:"toolCallId"`
		Status  string          `json:"status"`
		Content json.RawMessage `json:"content"`
		Meta    fields          `json:"_meta"`
	}
	if json.Unmarshal(raw, &u) != nil || u.Kind != "tool_call_update" || u.ID == "" {
		return false
	}
	piece, isPiece := delta(u.Meta)
	whole, isText := plainText(u.Content)
	runs := u.Status == "in_progress" || u.Status == "" && isPiece
	if !isPiece && !(runs && isText) {
		if u.Status == "completed" || u.Status == "failed" {
			s.endCall(u.ID)
		}
		return false
	}
	s.flush(true) // keeps the order of the events
	c := s.call(u.ID)
	if isPiece {
		c.take(piece)
	} else {
		c.takeWhole(whole)
	}
	rest, ok := others(raw, u.Meta, runs)
	if !runs {
		s.endCall(u.ID)
	}
	if ok && (!runs || string(rest) != c.rest) {
		c.rest = string(rest)
		s.update(rest)
	}
	if c.clean.Len() >= livePiece {
		s.flushCall(c)
	}
	s.flushLiveLater()
	return true
}

// delta returns the piece of output in an update.
func delta(meta fields) (text string, ok bool) {
	var d struct {
		Data *string `json:"data"`
	}
	if json.Unmarshal(meta["terminal_output_delta"], &d) != nil || d.Data == nil {
		return "", false
	}
	return *d.Data, true
}

// plainText returns content that consists only of text.
func plainText(content json.RawMessage) (text string, ok bool) {
	var blocks []struct {
		Type    string `json:"type"`
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(content, &blocks) != nil || len(blocks) == 0 {
		return "", false
	}
	var all strings.Builder
	for _, b := range blocks {
		if b.Type != "content" || b.Content.Type != "text" {
			return "", false
		}
		all.WriteString(b.Content.Text)
	}
	return all.String(), true
}

// others returns an update without its output; false if nothing else is in it. The
// result of a tool keeps its content.
func others(raw json.RawMessage, meta fields, runs bool) (json.RawMessage, bool) {
	var all fields
	if json.Unmarshal(raw, &all) != nil {
		return nil, false
	}
	meta = maps.Clone(meta)
	delete(meta, "terminal_output_delta")
	if delete(all, "_meta"); len(meta) > 0 {
		text, err := json.Marshal(meta)
		if err != nil {
			return nil, false
		}
		all["_meta"] = text
	}
	least := 3 // kind, id and status, which are known
	if runs {
		delete(all, "content")
		delete(all, "rawOutput")
	} else {
		least = 0
	}
	out, err := json.Marshal(all)
	return out, err == nil && len(all) > least
}

// call finds or begins a tool call. The caller holds mu.
func (s *Spool) call(id string) *toolCall {
	if i := slices.IndexFunc(s.live.calls, func(c *toolCall) bool { return c.id == id }); i >= 0 {
		return s.live.calls[i]
	}
	if len(s.live.calls) == liveCalls {
		s.endCall(s.live.calls[0].id)
	}
	c := &toolCall{id: id}
	c.scrub = s.o.Scrubber.Writer(&c.clean)
	s.live.calls = append(s.live.calls, c)
	return c
}

func (c *toolCall) take(text string) {
	if c.cut {
		return
	}
	if left := liveCall - c.taken; len(text) > left {
		c.cut = true
		text = text[:cut([]byte(text), left)] + liveMore
	}
	c.taken += len(text)
	_, _ = io.WriteString(c.scrub, text) // writing to a buffer never fails
}

// takeWhole takes the new part of an output that is repeated each time. An output
// that does not begin with the former one cannot be stored in pieces.
func (c *toolCall) takeWhole(text string) {
	more, ok := strings.CutPrefix(text, c.seen)
	if !ok {
		c.cut = true
	}
	if c.take(more); !c.cut {
		c.seen = text
	}
}

// endCall writes the rest of a tool call's output. The caller holds mu.
func (s *Spool) endCall(id string) {
	i := slices.IndexFunc(s.live.calls, func(c *toolCall) bool { return c.id == id })
	if i < 0 {
		return
	}
	c := s.live.calls[i]
	s.live.calls = slices.Delete(s.live.calls, i, i+1)
	_ = c.scrub.Close() // writing to a buffer never fails
	s.flushCall(c)
}

// flushLive writes the scrubbed output of all calls, or with end all output. The
// caller holds mu.
func (s *Spool) flushLive(end bool) {
	for _, c := range slices.Clone(s.live.calls) {
		if end {
			s.endCall(c.id)
		} else {
			s.flushCall(c)
		}
	}
	if end && s.live.timer != nil {
		s.live.timer.Stop()
		s.live.timer = nil
	}
}

func (s *Spool) flushCall(c *toolCall) {
	text := c.clean.Bytes()
	defer c.clean.Reset()
	if len(text) > 0 {
		c.put++
	}
	for len(text) > 0 && s.live.spent < s.o.TextTotal/liveShare {
		n := cut(text, s.o.TextEvent)
		raw, err := json.Marshal(map[string]any{
			"sessionUpdate": "tool_call_update", "toolCallId": c.id, "status": "in_progress",
			"_meta": map[string]any{"terminal_output_delta": map[string]string{"terminal_id": c.id, "data": string(text[:n])}},
		})
		if err == nil { // never fails, because these are strings
			s.live.spent += charge(raw)
			s.update(raw)
		}
		text = text[n:]
	}
}

// flushLiveLater makes a timer write the pending output when the window ends.
func (s *Spool) flushLiveLater() {
	if s.live.timer != nil || !slices.ContainsFunc(s.live.calls, func(c *toolCall) bool { return c.clean.Len() > 0 }) {
		return
	}
	slow := 1 // as the newest tool has it
	for _, c := range s.live.calls {
		slow = min(1+c.put/liveSlower, liveSlowest)
	}
	s.live.timer = time.AfterFunc(time.Duration(slow)*s.o.LiveWindow, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.live.timer = nil
		s.flushLive(false)
	})
}
