package llm_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"yardmaster/internal/llm"
)

const (
	large = 100 << 20 // bytes of an answer
	// held is how much memory an answer may hold, with both of its ends in this process.
	held = 64 << 20
)

// writeLarge writes a large text between two others.
func writeLarge(w io.Writer, head, tail string) {
	piece := []byte(strings.Repeat(`some \"text\" \u00e9\\`, 2000))
	_, err := io.WriteString(w, head)
	for sent := 0; sent < large && err == nil; sent += len(piece) {
		_, err = w.Write(piece)
	}
	if err == nil {
		_, _ = io.WriteString(w, tail)
	}
}

// largeAnswers are answers of 100 MB, by API and form, in the providers' words. Each is counted with 12 and 34.
var largeAnswers = map[string]struct {
	maker      llm.Provider
	path       string
	stream     bool
	head, tail string
}{
	"chat": {llm.OpenAI, "/v1/chat/completions", false, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"`,
		`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46}}`},
	"messages": {llm.Anthropic, "/v1/messages", false, `{"type":"message","role":"assistant","content":[{"type":"text","text":"`,
		`"}],"stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":34}}`},
	"responses": {llm.OpenAI, "/v1/responses", false, `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"`,
		`"}]}],"usage":{"input_tokens":12,"output_tokens":34}}`},
	"a stream of responses, whose last event has all": {llm.OpenAI, "/v1/responses", true,
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"some\"}\n\n" +
			"event: response.completed\n" + `data: {"type":"response.completed","response":{"object":"response","status":"completed",` +
			`"output":[{"type":"message","content":[{"type":"output_text","text":"`,
		`"}]}],"usage":{"input_tokens":12,"output_tokens":34}}}` + "\n\n"},
	"a stream of one event": {llm.Anthropic, "/v1/messages", true,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"usage\":{\"input_tokens\":12,\"output_tokens\":1}}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"",
		"\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":34}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
}

// TestLargeAnswers: an answer of 100 MB comes whole and is counted, whatever its form, and never lies whole in memory.
func TestLargeAnswers(t *testing.T) {
	for name, c := range largeAnswers {
		t.Run(name, func(t *testing.T) {
			far := provider(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[c.stream])
				writeLarge(w, c.head, c.tail)
			})
			d := &desk{route: llm.Route{Provider: c.maker, BaseURL: far}}
			url, _ := gateway(t, d, nil)
			resp, err := http.DefaultClient.Do(ask(t, url, c.path, fmt.Sprintf(`{"model":"m","stream":%v}`, c.stream)))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			before := inUse()
			n, err := io.CopyN(io.Discard, resp.Body, large*9/10)
			if now := inUse(); now > before+held {
				t.Errorf("%d MB are in memory", (now-before)>>20)
			}
			rest, end := io.ReadAll(resp.Body)
			if err != nil || end != nil || n+int64(len(rest)) < large || !bytes.HasSuffix(rest, []byte(c.tail)) {
				t.Errorf("%d bytes, %d more: %v %v", n, len(rest), err, end)
			}
			if u := d.recorded(t); u.Aborted || u.Estimated || u.Kind != "" || u.InputTokens != 12 || u.OutputTokens != 34 {
				t.Errorf("%+v", u)
			}
		})
	}
}

// inUse is how many bytes of memory are in use.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCallerLeavesALargeAnswer: what came until then is paid for, at no more than the call may have.
func TestCallerLeavesALargeAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		stream bool
		most   int64
		want   func(int64) bool
	}{
		"whole":                {want: func(n int64) bool { return n > 1<<20 }},
		"whole, with a cap":    {most: 500, want: func(n int64) bool { return n == 500 }},
		"streamed":             {stream: true, want: func(n int64) bool { return n > 10_000 }},
		"streamed, with a cap": {stream: true, most: 500, want: func(n int64) bool { return n == 500 }},
	} {
		t.Run(name, func(t *testing.T) {
			far := provider(t, func(w http.ResponseWriter, r *http.Request) {
				if !c.stream {
					w.Header().Set("Content-Type", "application/json")
					writeLarge(w, largeAnswers["messages"].head, largeAnswers["messages"].tail)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, err := io.WriteString(w, started)
				for err == nil {
					_, err = io.WriteString(w, started[strings.Index(started, "event: content"):])
				}
			})
			d := &desk{route: llm.Route{Provider: llm.Anthropic, BaseURL: far}}
			url, _ := gateway(t, d, nil)
			body := `{"model":"m","stream":` + fmt.Sprint(c.stream)
			if c.most > 0 {
				body += fmt.Sprintf(`,"max_tokens":%d`, c.most)
			}
			ctx, leave := context.WithCancel(t.Context())
			resp, err := http.DefaultClient.Do(ask(t, url, "/v1/messages", body+"}").WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.CopyN(io.Discard, resp.Body, 8<<20); err != nil {
				t.Fatal(err)
			}
			leave()
			if u := d.recorded(t); !u.Aborted || !u.Estimated || !c.want(u.OutputTokens) {
				t.Errorf("%+v", u)
			}
		})
	}
}

// TestNothingIsNoCount: a provider that counts no output of an answer that has some is not believed.
func TestNothingIsNoCount(t *testing.T) {
	u := counted(t, llm.OpenAI, "/v1/chat/completions", "application/json",
		`{"choices":[{"message":{"content":"four words of text"},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":0}}`)
	if !u.Estimated || u.InputTokens != 12 || u.OutputTokens == 0 {
		t.Errorf("%+v", u)
	}
}
