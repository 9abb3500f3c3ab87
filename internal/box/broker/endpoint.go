package broker

import (
	"bufio"
	"bytes"
	"net/url"
)

// endpoint is a stream of events in which an MCP server of the transport sse
// says where its client is to post. That lies within the host, and is made to
// lead back here like a redirect; one that leads elsewhere is taken out. It
// comes as the first event.
type endpoint struct {
	lines *bufio.Reader
	at    *url.URL // of the stream
	base  string   // where its host begins here

	named bool // the line before told that this is the event
	past  bool // the first event is over
	ready []byte
}

func (e *endpoint) Read(p []byte) (int, error) {
	if len(e.ready) > 0 {
		n := copy(p, e.ready)
		e.ready = e.ready[n:]
		return n, nil
	}
	if e.past {
		return e.lines.Read(p)
	}
	line, err := e.lines.ReadSlice('\n')
	if err != nil {
		e.past = true // also with a line that is too long to be one of those
		if len(line) == 0 {
			return 0, err
		}
		e.ready = bytes.Clone(line)
		return e.Read(p)
	}
	text := bytes.TrimRight(line, "\r\n")
	place, isData := bytes.CutPrefix(text, []byte("data:"))
	switch {
	case len(text) == 0:
		e.past = true
	case bytes.Equal(bytes.ReplaceAll(text, []byte(" "), nil), []byte("event:endpoint")):
		e.named = true
	case e.named && isData:
		line = []byte("data: " + within(string(bytes.TrimSpace(place)), e.at, e.base) + "\n")
	}
	e.ready = bytes.Clone(line)
	return e.Read(p)
}
