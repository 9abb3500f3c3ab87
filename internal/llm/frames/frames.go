// Package frames reads the streams of Amazon Bedrock: frames with checksums, each with
// headers and a document. What the models of Anthropic stream is an event of the Messages
// API in each frame, and comes out as the server-sent events that this API has elsewhere.
package frames

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// Type is the media type of a stream of frames.
const Type = "application/vnd.amazon.eventstream"

const (
	// maxFrame is how long a frame may be. Amazon's own are 24 MiB at most.
	maxFrame = 24 << 20
	// leastFrame is a frame without headers and document.
	leastFrame = 16
)

// Events are the events of a stream of frames of the Messages API. A frame that is torn
// or has a wrong checksum ends them with io.ErrUnexpectedEOF: nothing behind it can be
// believed. What Amazon says itself of a failure is an event of the type error.
func Events(body io.ReadCloser) io.ReadCloser {
	return &events{body: body, in: bufio.NewReader(body), decode: eventstream.NewDecoder()}
}

type events struct {
	body    io.Closer
	in      *bufio.Reader
	decode  *eventstream.Decoder
	payload []byte // of the last frame, whose memory the next one uses
	out     bytes.Buffer
	err     error
}

func (e *events) Close() error { return e.body.Close() }

func (e *events) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err == nil {
			e.err = e.next()
		}
		if e.err != nil && e.out.Len() == 0 {
			return 0, e.err
		}
	}
	return e.out.Read(p)
}

// next reads a frame.
func (e *events) next() error {
	head, err := e.in.Peek(8)
	switch {
	case len(head) == 0:
		return err // the end, or why there is none
	case len(head) < 8:
		return torn(err)
	}
	long, headers := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	if long > maxFrame || headers > maxFrame || long < headers+leastFrame {
		return torn(errors.New("a frame has an impossible length"))
	}
	m, err := e.decode.Decode(e.in, e.payload)
	if err != nil {
		return torn(err)
	}
	e.payload = m.Payload[:0]
	said := func(name string) string {
		if v := m.Headers.Get(name); v != nil {
			return v.String()
		}
		return ""
	}
	switch said(":message-type") {
	case "event":
		return e.event(m.Payload)
	case "exception":
		var why struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(m.Payload, &why) // the kind says enough
		return e.fail(said(":exception-type"), why.Message)
	default:
		return e.fail(said(":error-code"), said(":error-message"))
	}
}

// torn says that the stream is broken, as a connection that is cut does.
func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
}

// event writes the event in a frame. A frame of another kind has none.
func (e *events) event(payload []byte) error {
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	if err := json.Unmarshal(payload, &chunk); err != nil {
		return torn(err)
	}
	if len(chunk.Bytes) == 0 {
		return nil
	}
	var is struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(chunk.Bytes, &is); err != nil {
		return torn(err)
	}
	return e.write(is.Type, chunk.Bytes)
}

func (e *events) write(kind string, document []byte) error {
	e.out.WriteString("event: " + strings.NewReplacer("\r", " ", "\n", " ").Replace(kind) + "\ndata: ")
	if err := json.Compact(&e.out, document); err != nil { // an event's document is one line
		return torn(err)
	}
	e.out.WriteString("\n\n")
	return nil
}

// kinds are the errors of the Messages API by a part of the names of Amazon's.
var kinds = []struct{ part, kind string }{
	{"throttling", "rate_limit_error"},
	{"serviceunavailable", "overloaded_error"},
	{"modelnotready", "overloaded_error"},
	{"validation", "invalid_request_error"},
	{"accessdenied", "permission_error"},
	{"resourcenotfound", "not_found_error"},
	{"timeout", "timeout_error"},
}

// fail writes an error in the form of the Messages API. Amazon's own name of it is its code.
func (e *events) fail(code, message string) error {
	kind := "api_error"
	for _, k := range kinds {
		if strings.Contains(strings.ToLower(code), k.part) {
			kind = k.kind
			break
		}
	}
	text, err := json.Marshal(map[string]any{
		"type": "error", "error": map[string]string{"type": kind, "code": code, "message": message},
	})
	if err != nil {
		return err
	}
	return e.write("error", text)
}
