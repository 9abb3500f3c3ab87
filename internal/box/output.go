package box

import (
	"encoding/json"
	"strings"
	"sync"
	"unicode/utf8"
)

// tail keeps the last bytes that were written to it.
type tail struct {
	limit int

	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), ""))
}

// chunks turns a program's output into messages of an agent.
type chunks struct {
	update func(json.RawMessage)

	mu   sync.Mutex
	part []byte // the beginning of a character that is not complete yet
}

func (c *chunks) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := append(c.part, p...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				whole -= n
			}
			break
		}
	}
	if whole > 0 {
		raw, err := json.Marshal(map[string]any{
			"sessionUpdate": "agent_message_chunk",
			"content":       map[string]string{"type": "text", "text": string(text[:whole])},
		})
		if err != nil {
			return 0, err
		}
		c.update(raw)
	}
	c.part = append([]byte(nil), text[whole:]...)
	return len(p), nil
}
