package coder

import (
	"encoding/json"
	"fmt"
)

const (
	user      = "user"
	assistant = "assistant"
)

// message is one step of a conversation, independent of a provider's API. A user's
// message holds text or the results of the calls before it.
type message struct {
	role    string
	text    string
	calls   []call
	results []result
}

type call struct {
	id, name string
	args     json.RawMessage // the model's arguments; not always a JSON object
}

type result struct {
	id, text string
	failed   bool
}

// bytesPerToken is a low estimate for code, so that trim acts early rather than
// late.
const bytesPerToken = 3

// keepResults is how many of the newest messages with results are never cut.
const keepResults = 4

// minDropped is the size in bytes up to which a result is too small to cut.
const minDropped = 400

// trim cuts old tool results once the conversation fills three quarters of the
// context, down to half of it. Rare large cuts keep a provider's prompt cache
// useful in between.
func trim(history []message, contextTokens int) {
	limit := contextTokens * bytesPerToken
	if size(history) > limit/4*3 {
		trimTo(history, limit/2)
	}
}

// trimTo cuts the oldest tool results until the conversation has at most target
// bytes, and tells whether it cut any.
func trimTo(history []message, target int) bool {
	total, newest := size(history), 0
	last := len(history)
	for last > 0 && newest < keepResults {
		last--
		if len(history[last].results) > 0 {
			newest++
		}
	}
	cut := false
	for i := range history[:last] {
		for j := range history[i].results {
			r := &history[i].results[j]
			if total <= target {
				return cut
			}
			if len(r.text) > minDropped {
				note := fmt.Sprintf("[%d bytes of old output dropped; run the tool again if you need it]", len(r.text))
				total += len(note) - len(r.text)
				r.text, cut = note, true
			}
		}
	}
	return cut
}

func size(history []message) int {
	n := 0
	for _, m := range history {
		n += len(m.text)
		for _, c := range m.calls {
			n += len(c.args)
		}
		for _, r := range m.results {
			n += len(r.text)
		}
	}
	return n
}

// object returns the call's arguments as a JSON object, which providers require.
func (c call) object() json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(c.args, &o) != nil || o == nil {
		return json.RawMessage("{}")
	}
	return c.args
}

func encode(v any) (json.RawMessage, error) { return json.Marshal(v) }
