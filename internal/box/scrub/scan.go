package scrub

import (
	"cmp"
	"slices"
	"sync"
)

// compiled holds the automata for a set of secrets.
type compiled struct {
	exact, text, hex *automaton
	none             bool // there are no secrets
	scanners         sync.Pool
}

func compile(secrets map[string]bool) *compiled {
	p := newPatterns()
	for s := range secrets {
		p.add(s)
	}
	c := &compiled{
		none:  len(secrets) == 0,
		exact: newAutomaton(p.exact, 8), text: newAutomaton(p.text, 8), hex: newAutomaton(p.hex, 4),
	}
	c.scanners.New = func() any { return newScanner(c) }
	return c
}

// scanner finds secrets in a stream.
type scanner struct {
	none  bool
	end   int64 // position after the last byte
	exact cursor
	un    unescaper
	view  view
	found []span
}

func newScanner(c *compiled) *scanner {
	s := &scanner{none: c.none, exact: newCursor(c.exact)}
	s.view = view{
		text: newCursor(c.text), lines: shadow{cursor: newCursor(c.text)},
		hex: digitsView{digits: newCursor(c.hex)}, dump: dumpView{shadow: shadow{cursor: newCursor(c.hex)}},
		dec: numbers{bytes: newCursor(c.exact), base: 10}, oct: numbers{bytes: newCursor(c.exact), base: 8},
	}
	s.un.next = s.view.put
	s.clear(0)
	return s
}

func (s *scanner) cursors() [7]*cursor {
	v := &s.view
	return [...]*cursor{&s.exact, &v.text, &v.lines.cursor, &v.hex.digits, &v.dump.cursor, &v.dec.bytes, &v.oct.bytes}
}

// clear resets the scanner for a stream that begins at a position.
func (s *scanner) clear(from int64) {
	for _, c := range s.cursors() {
		c.clear()
		c.to = from
	}
	s.un.clear()
	s.end, s.found = from, s.found[:0]
	v := &s.view
	for _, w := range []*symbols{&v.waiting, &v.hex.waiting, &v.dump.waiting} {
		w.drop(len(w.text))
	}
	v.calm, v.color, v.margin, v.dump.place = false, 0, atStart, lineStart
	v.hex.number, v.hex.inside, v.hex.quiet, v.dump.tail, v.dump.lines = false, false, true, 0, 0
	v.lines.apart, v.dump.apart = false, false
	v.lines.part(&v.text)
	v.dump.part(&v.hex.digits)
	for _, n := range []*numbers{&v.dec, &v.oct} {
		n.busy, n.length, n.negative = false, 0, false
	}
}

func (s *scanner) feed(p []byte) {
	if s.none {
		s.end += int64(len(p))
		return
	}
	s.exact.bytes(p, s.end)
	v := &s.view
	for i := 0; i < len(p); i++ {
		b, at := p[i], s.end+int64(i)
		k := kinds[b]
		switch {
		case k&isEscape != 0 || s.un.pending != 0:
			s.un.put(0, b, at, at+1)
		case !v.calm:
			v.put(b, at, at+1)
		case k&(isHex|isNumeric|isSpecial) == 0:
			if k&isSpace == 0 {
				v.text.step(fold[b], at, at+1)
			}
		case k&(isHex|isNumeric|isSpecial) == isHex && inWord(p[i+1:]):
			v.text.step(b, at, at+1) // a to f, between letters that make it no digit
		default:
			v.put(b, at, at+1)
		}
	}
	s.end += int64(len(p))
}

// inWord tells whether p begins with fewer digits than any form has, followed by a
// letter that is no digit.
func inWord(p []byte) bool {
	for _, b := range p[:min(len(p), 6)] {
		if k := kinds[b]; k&isHex == 0 {
			return k&(isSpace|isSign|isEscape|isSpecial) == 0
		} else if k&isNumeric != 0 {
			return false
		}
	}
	return false
}

// finish ends the stream.
func (s *scanner) finish() {
	s.un.finish()
	s.view.finish(s.end)
}

// undecided returns the position of the first possible begin of a secret that is
// not found yet.
func (s *scanner) undecided() int64 {
	waiting := s.un.undecided(s.end)
	return min(s.exact.undecided(s.end, true), waiting, s.view.undecided(waiting))
}

// spans returns the secrets found so far, sorted by their begin.
func (s *scanner) spans() []span {
	for _, c := range s.cursors() {
		s.found = append(s.found, c.found...)
		c.found = c.found[:0]
	}
	slices.SortFunc(s.found, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return s.found
}

// any tells whether a secret was found.
func (s *scanner) any() bool {
	for _, c := range s.cursors() {
		if len(c.found) > 0 {
			return true
		}
	}
	return len(s.found) > 0
}

// redaction writes the bytes and replaces each run of them that spans cover by one
// Mark. Spans that overlap or touch are one run.
type redaction struct {
	cut  int64 // the bytes before it are written or part of a run
	open bool  // nothing was written since the last Mark
}

// write appends text, which begins at the position begin, to out, up to limit. It
// returns the spans that begin later.
func (r *redaction) write(out, text []byte, begin int64, spans []span, limit int64) ([]byte, []span) {
	for len(spans) > 0 && spans[0].from < limit {
		s := spans[0]
		spans = spans[1:]
		if s.from > r.cut {
			out, r.open = append(out, text[r.cut-begin:s.from-begin]...), false
		}
		if !r.open {
			out, r.open = append(out, Mark...), true
		}
		r.cut = max(r.cut, s.to)
	}
	if r.cut < limit {
		out = append(out, text[r.cut-begin:limit-begin]...)
		r.open, r.cut = false, limit
	}
	return out, spans
}
