package frames_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"yardmaster/internal/llm/frames"
)

// frame is a frame with headers that are texts, a name and its value in turn.
func frame(t testing.TB, payload string, headers ...string) []byte {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var out bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func chunk(t testing.TB, event string) []byte {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"bytes": []byte(event), "p": "abc"})
	if err != nil {
		t.Fatal(err)
	}
	return frame(t, string(payload), ":event-type", "chunk", ":content-type", "application/json", ":message-type", "event")
}

func read(body []byte) (string, error) {
	text, err := io.ReadAll(frames.Events(io.NopCloser(bytes.NewReader(body))))
	return string(text), err
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		frame []byte
		want  string
	}{
		"an event":              {chunk(t, "{\"type\":\"ping\",\n \"a\":\"\\n\"}"), "event: ping\ndata: {\"type\":\"ping\",\"a\":\"\\n\"}\n\n"},
		"another kind of frame": {frame(t, `{"p":"a"}`, ":message-type", "event", ":event-type", "other"), ""},
		"throttled": {frame(t, `{"message":"Too many."}`, ":message-type", "exception", ":exception-type", "throttlingException"),
			"event: error\ndata: {\"error\":{\"code\":\"throttlingException\",\"message\":\"Too many.\",\"type\":\"rate_limit_error\"},\"type\":\"error\"}\n\n"},
		"unmodelled": {frame(t, "", ":message-type", "error", ":error-code", "InternalFailure", ":error-message", "Oops."),
			"event: error\ndata: {\"error\":{\"code\":\"InternalFailure\",\"message\":\"Oops.\",\"type\":\"api_error\"},\"type\":\"error\"}\n\n"},
	} {
		if got, err := read(x.frame); got != x.want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// What is cut, wrong or impossibly long is the end, and what came before it stays.
func TestBrokenFrames(t *testing.T) {
	t.Parallel()
	good := chunk(t, `{"type":"ping"}`)
	first, err := read(good)
	if err != nil {
		t.Fatal(err)
	}
	for at := 1; at < len(good); at++ {
		if got, err := read(append(bytes.Clone(good), good[:at]...)); got != first || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %q, %v", at, got, err)
		}
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		if got, err := read(append(bytes.Clone(good), bad...)); got != first || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("wrong at %d: %q, %v", at, got, err)
		}
	}
	for name, body := range map[string][]byte{
		"no event":  chunk(t, `nothing`),
		"no chunk":  frame(t, `nothing`, ":message-type", "event"),
		"no frames": []byte(strings.Repeat("<html>", 10)),
	} {
		if got, err := read(body); got != "" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Nothing that a peer sends breaks the reader, and whatever comes out is whole events.
func FuzzEvents(f *testing.F) {
	f.Add(chunk(f, `{"type":"ping"}`))
	f.Add(frame(f, `{"message":"a"}`, ":message-type", "exception", ":exception-type", "a\nb"))
	f.Add([]byte{0, 0, 0, 16, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		text, _ := read(body)
		if text != "" && (!strings.HasPrefix(text, "event: ") || !strings.HasSuffix(text, "\n\n")) {
			t.Errorf("%q", text)
		}
	})
}
