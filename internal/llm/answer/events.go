package answer

import (
	"bytes"
	"encoding/json"
)

// maxEvent is how many bytes of one event or document are read. A longer one is
// passed over.
const maxEvent = 8 << 20

// events splits a stream of server-sent events, in any chunking: lines end with LF,
// CRLF or CR, and several data lines are one event.
type events struct {
	line  []byte // of a line that has no end yet
	cr    bool   // the last byte was a CR: a LF that follows belongs to it
	name  string
	data  []byte
	has   bool
	count int64
	over  bool // the event is longer than maxEvent
	past  bool // such an event was passed over
	short bool // the texts of a long line are shortened, so that it need not be passed over
	thin  thin // of the line that has no end yet

	borrowed bool // data is a part of what is being written
}

// write splits the next bytes, and calls emit with each event that is complete. The
// data is good until emit returns.
func (e *events) write(p []byte, emit func(name string, data []byte)) {
	for len(p) > 0 {
		if e.cr {
			e.cr = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := lineEnd(p)
		if end < 0 {
			e.keep(p)
			break
		}
		line := p[:end]
		if len(e.line) > 0 {
			e.keep(line)
			line = e.line
		}
		e.cr = p[end] == '\r'
		p = p[end+1:]
		if len(line) == 0 {
			e.dispatch(emit)
		} else if value, add := e.field(line); add {
			if !e.has && len(e.line) == 0 {
				e.data, e.has, e.borrowed = value, true, true
			} else {
				e.add(value)
			}
		}
		e.line, e.thin = e.line[:0], thin{}
	}
	e.own()
}

// own makes data memory of the event's own.
func (e *events) own() {
	if e.borrowed {
		e.data, e.borrowed = bytes.Clone(e.data), false
	}
}

// lineEnd is the offset of the first CR or LF; -1 without one.
func lineEnd(p []byte) int {
	n := bytes.IndexByte(p, '\n')
	if n < 0 {
		return bytes.IndexByte(p, '\r')
	}
	if r := bytes.IndexByte(p[:n], '\r'); r >= 0 {
		return r
	}
	return n
}

// keep keeps a piece of a line that has no end yet.
func (e *events) keep(p []byte) {
	if e.short && !e.thin.on && len(e.line)+len(p) > maxEvent {
		e.line = e.thin.start(e.line)
	}
	if e.thin.on {
		if e.line = e.thin.add(e.line, p); len(e.line) > maxEvent {
			e.over, e.line = true, e.line[:0]
		}
		return
	}
	if len(e.line)+len(p) > maxEvent {
		e.over = true
		return
	}
	e.line = append(e.line, p...)
}

// field reads a line, and answers a piece of the event's data.
func (e *events) field(line []byte) (value []byte, data bool) {
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "data":
		return value, true
	case "event":
		e.name = "" // only errors are told by the name
		if string(value) == "error" {
			e.name = "error"
		}
	case "error": // older servers of llama.cpp name the field so
		e.name = "error"
		return value, true
	}
	return nil, false
}

// add appends a data line, in memory of the event's own.
func (e *events) add(value []byte) {
	if len(e.data)+len(value) > maxEvent {
		e.over = true
		return
	}
	e.own()
	if e.has {
		e.data = append(e.data, '\n')
	}
	e.data, e.has = append(e.data, value...), true
}

func (e *events) dispatch(emit func(name string, data []byte)) {
	if e.has && !e.over {
		e.count++
		emit(e.name, e.data)
	}
	e.past = e.past || e.over
	e.name, e.data, e.has, e.over, e.borrowed = "", nil, false, false, false
}

// end takes the last event even without its empty line, if its document is complete.
func (e *events) end(emit func(name string, data []byte)) {
	if len(e.line) > 0 {
		if value, add := e.field(e.line); add {
			e.add(value)
		}
	}
	if e.has && (json.Valid(e.data) || string(e.data) == done) {
		e.dispatch(emit)
	}
}

const done = "[DONE]"
