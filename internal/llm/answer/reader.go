package answer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
)

// Options say what a Reader reads, and what for.
type Options struct {
	API    API
	Status int         // of the answer; an error's body may be in any form
	Header http.Header // for its type, and for waits
	// Keep keeps what the answer says, for Answer; without it the Reader only counts
	// and judges, and keeps no more than one event.
	Keep bool
	// Text is called with each piece of text as it comes; nil: nobody is told.
	Text func(string)
}

// Reader reads one answer as its bytes come. It is not for concurrent use.
type Reader struct {
	Options
	mode   mode
	head   []byte // bytes before the mode is known; in document, all of it
	thin   thin   // of a document that is longer than maxEvent
	over   bool   // it is as long also when its texts are shortened
	events events
	usage  counts

	uncounted int64 // events since usage has changed

	model, done, begun bool // something of a model's answer, its end, some content
	last               bool // the mark behind the last event
	stop               Stop
	reason             string
	said               *said // the provider's error
	failure            *Failure
	parts              parts
}

type mode byte

const (
	undecided mode = iota
	stream
	document
	refusal // the body of an error status
	strange // neither
)

// New makes a Reader.
func New(o Options) *Reader {
	r := &Reader{Options: o}
	r.events.short = !o.Keep
	if o.Status/100 != 2 {
		r.mode = refusal
	}
	return r
}

// maxRefusal is how many bytes of an error's body are read.
const maxRefusal = 64 << 10

// Write takes the next bytes of the answer. It never fails.
func (r *Reader) Write(p []byte) (int, error) {
	n := len(p)
	if r.mode == undecided {
		if len(r.head) > 0 {
			r.head = append(r.head, p...)
			p = r.head
		}
		var rest []byte
		if r.mode, rest = r.decide(p, false); r.mode == undecided {
			r.head = append(r.head[:0], rest...)
			return n, nil
		}
		p, r.head = rest, nil
	}
	switch r.mode {
	case stream:
		r.events.write(p, r.event)
		r.begun = r.begun || r.events.over || r.events.past || r.events.thin.on
	case refusal:
		r.head = append(r.head, p[:min(len(p), maxRefusal-len(r.head))]...)
	case document:
		r.document(p)
	}
	return n, nil
}

// document takes the next bytes of a document. Of one that is too long the texts are shortened,
// unless they are kept for the Answer.
func (r *Reader) document(p []byte) {
	if long := len(r.head)+len(p) > maxEvent; long && !r.Keep && !r.thin.on {
		r.head = r.thin.start(r.head)
	}
	switch {
	case r.over:
	case r.thin.on:
		r.begun = true
		if r.head = r.thin.add(r.head, p); len(r.head) > maxEvent {
			r.over, r.head = true, nil
		}
	case len(r.head)+len(p) > maxEvent:
		r.over = true
	default:
		r.head = append(r.head, p...)
	}
}

// decide tells what a body is by its first bytes, whatever its type says. The rest
// is without a byte order mark and, in a document, without leading space.
func (r *Reader) decide(p []byte, ended bool) (mode, []byte) {
	const mark = "\xef\xbb\xbf"
	if len(p) < len(mark) && strings.HasPrefix(mark, string(p)) && !ended {
		return undecided, p
	}
	p = bytes.TrimPrefix(p, []byte(mark))
	first := bytes.TrimLeft(p, " \t\r\n")
	switch events := strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream"); {
	case len(first) > 0 && (first[0] == '{' || first[0] == '['):
		return document, first
	case events && len(first) > 0:
		return stream, p
	case len(first) > 0:
		for _, field := range []string{":", "data:", "event:", "id:", "retry:", "error:"} {
			if strings.HasPrefix(string(first[:min(len(first), len(field))]), field) {
				return stream, p
			}
			if !ended && strings.HasPrefix(field, string(first)) {
				return undecided, p
			}
		}
		return strange, nil
	case ended:
		return strange, nil
	}
	return undecided, nil // nothing but space
}

// End takes the end of the answer: nil where the transport ended properly, otherwise
// what broke it.
func (r *Reader) End(broken error) {
	if r.mode == undecided {
		var rest []byte
		if r.mode, rest = r.decide(r.head, true); r.mode == stream {
			r.events.write(rest, r.event)
		}
	}
	torn := false
	switch r.mode {
	case stream:
		if broken == nil {
			r.events.end(r.event)
		}
	case refusal:
		s := readError(r.head)
		s.status = r.Status
		r.said = &s
	case document:
		switch torn = !r.over && !json.Valid(r.head); {
		case r.over:
			r.model, r.done, r.begun = true, broken == nil, true
		case !torn:
			r.whole(r.head)
		}
	}
	r.judge(broken != nil || torn)
}

// judge decides whether the answer is whole.
func (r *Reader) judge(cut bool) {
	r.parts.finish()
	switch {
	case r.said != nil:
		r.failure = r.said.classify(r.Header)
		r.failure.Final = r.failure.Final || r.mode == document && r.failure.Kind == Server && r.said.bare()
	case r.done, !cut && r.events.past: // what was passed over may have been the end
		if r.stop == None { // it has ended, and says not why
			r.stop = End
		}
		if r.stop == End && r.parts.callable() {
			r.stop = ToolUse
		}
		if r.stop == End && r.parts.refusal.Len() > 0 {
			r.stop = Refused
		}
		return
	case cut || r.model:
		r.failure = &Failure{Kind: Cut, Elsewhere: true}
	default:
		r.failure = &Failure{Kind: NotAnswer, Elsewhere: true}
	}
	r.failure.Elsewhere = r.failure.Elsewhere && !r.begun
	if r.stop != Broken {
		r.stop, r.reason = None, ""
	}
}

// Begun tells whether content has come: a part of the answer that the caller may see.
func (r *Reader) Begun() bool { return r.begun }

// Over tells that nothing of the answer follows, though the connection may stay open.
func (r *Reader) Over() bool {
	return r.said != nil || r.done && (r.last || r.API == Messages || r.API == Responses)
}

// Failed tells whether the provider has reported an error so far.
func (r *Reader) Failed() bool { return r.said != nil }

// Streaming tells whether the answer is a stream of events, as far as is known.
func (r *Reader) Streaming() bool { return r.mode == stream }

// Failure is why there is no whole answer; nil for a whole one. It is known after End.
func (r *Reader) Failure() *Failure { return r.failure }

// Events is how many events have come.
func (r *Reader) Events() int64 { return r.events.count }

// Uncounted is how many events have come since the provider has last told another count.
func (r *Reader) Uncounted() int64 { return r.uncounted }

// Usage is the count so far; false if the provider has told none.
func (r *Reader) Usage() (Usage, bool) { return r.usage.usage(), r.usage.told }

// Tier is the one that the provider says it has served the call in; empty: it says none.
func (r *Reader) Tier() string { return r.usage.tier }

// Answer is what the answer comes to, after End and with Options.Keep.
func (r *Reader) Answer() Answer {
	a := Answer{
		Text: r.parts.text.String(), Refusal: r.parts.refusal.String(), Stop: r.stop, Reason: r.reason, Failure: r.failure,
	}
	r.parts.into(&a)
	if u, told := r.Usage(); told {
		a.Usage = &u
	}
	return a
}

// event takes one event of a stream.
func (r *Reader) event(name string, data []byte) {
	if string(data) == done {
		r.last = true
		return
	}
	if r.said != nil {
		return
	}
	was := r.usage
	defer func() {
		if r.uncounted++; r.usage != was {
			r.uncounted = 0
		}
	}()
	v := value(bytes.TrimSpace(data))
	top := v.pick("error", "type", "object")
	failed := name == "error" || isError(top[0], top[1], top[2])
	if !failed || r.API == Chat { // a chunk of chat completions may have both
		r.content(v)
	}
	if failed && r.said == nil {
		s := readError(data)
		r.said = &s
	}
}

// content reads an event of the API's form.
func (r *Reader) content(v value) {
	switch r.API {
	case Messages:
		r.messagesEvent(v)
	case Chat:
		r.chat(v)
	case Responses:
		r.responsesEvent(v)
	case Gemini:
		r.gemini(v)
	}
}

// whole takes a whole answer.
func (r *Reader) whole(data []byte) {
	v := value(data)
	top := v.pick("error", "type", "object")
	if v[0] == '[' || isError(top[0], top[1], top[2]) {
		if s := readError(data); s.present {
			r.said = &s
		}
		return
	}
	// A document that is complete has its end, also if it says not why; so has one
	// that has been counted and has nothing else.
	defer func() { r.done = r.done || r.said == nil && (r.model || r.usage.told) }()
	switch r.API {
	case Messages:
		r.message(v)
	case Responses:
		m := v.pick("object", "status", "output")
		if status := cmp.Or(m[1].str(), "completed"); m[0].is("response") {
			r.response(v, status, true)
		}
	default:
		r.content(v)
	}
}

// isError tells whether an object is an error, by three of its members.
func isError(err, kind, object value) bool {
	return !err.empty() && (err.object() || err[0] == '"') || kind.is("error") || object.is("error")
}

// end notes why the answer ends.
func (r *Reader) end(reason value, stops func(string) Stop) {
	if reason.empty() {
		return
	}
	r.reason = reason.str()
	if r.stop = stops(r.reason); r.stop == None {
		r.stop = Broken
	}
}
