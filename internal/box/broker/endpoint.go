package broker

import (
	"bufio"
	"bytes"
	"net/url"
)

// endpoint reads an event stream in which an MCP server with the transport sse
// names the address to post to. endpoint changes an address within the host so that
// it leads back to the broker, as for a redirect, and removes an address of another
// host. The address comes in the first event.
type endpoint struct {
	lines *bufio.Reader
	at    *url.URL // address of the stream
	base  string   // relative reference to the root of its host

	named bool // the line before has named this event endpoint
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
		e.past = true // also after a line too long to name an address
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
