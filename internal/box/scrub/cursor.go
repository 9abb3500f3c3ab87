package scrub

// maxGap is how many bytes of the source may lie between two symbols of a secret: a
// deep indentation, or the right part of a line in a hex dump.
const maxGap = 128

// span is a part of the source, as positions in all bytes written so far.
type span struct{ from, to int64 }

// cursor runs an automaton over symbols, each of which stands for a part of the
// source.
type cursor struct {
	a     *automaton
	state int32   // 0 while fewer symbols than the automaton's gate match
	last  uint32  // the last gate symbols
	n     int64   // symbols so far
	begin int64   // symbols before the last reset
	whole int64   // symbols before the last gap
	to    int64   // end of the last symbol
	ring  []int64 // starts of the last symbols; its length is a power of two
	found []span
}

func newCursor(a *automaton) cursor { return cursor{a: a, ring: make([]int64, 64)} }

func (c *cursor) clear() {
	*c = cursor{a: c.a, ring: c.ring, found: c.found[:0]}
}

// step takes one symbol. Positions never decrease.
func (c *cursor) step(b byte, from, to int64) {
	if from > c.to {
		if from-c.to > maxGap {
			c.reset()
		}
		c.whole = c.n
	}
	c.to = to
	c.ring[c.n&int64(len(c.ring)-1)] = from
	c.n++
	c.last = c.last<<c.a.width | uint32(b)
	if c.state != 0 || c.a.mayStart(c.last) {
		c.walk(b)
	}
}

// follow copies the state of o to c.
func (c *cursor) follow(o *cursor) {
	c.state, c.last, c.n, c.begin, c.whole, c.to = o.state, o.last, o.n, o.begin, o.whole, o.to
	if len(c.ring) < len(o.ring) {
		c.ring = make([]int64, len(o.ring))
	}
	need := int64(c.a.depth[c.state])
	for back := int64(1); back <= max(need, int64(c.a.gate)) && back <= c.n; back++ {
		c.ring[(c.n-back)&int64(len(c.ring)-1)] = o.start(back)
	}
}

// shadow is a second cursor that equals the first except for the symbols that it
// leaves out. It has a state of its own only from the first such symbol until
// neither cursor depends on it any more, so that copying the first one's state
// costs no more than its symbols did.
type shadow struct {
	cursor
	apart bool
	since int64 // number of symbols when it last left something out
}

// part gives the shadow a state of its own, a copy of the first one's.
func (s *shadow) part(first *cursor) {
	if !s.apart {
		s.follow(first)
		s.apart = true
	}
	s.since = s.n
}

// join ends the shadow's own state if none of the symbols that it left out matters
// any more.
func (s *shadow) join(first *cursor) {
	none := s.state == 0 && first.state == 0
	if none && (s.n-max(s.since, s.begin) >= int64(s.a.gate) || s.n == s.begin && first.n == first.begin) {
		s.apart = false
	}
}

// bytes takes the bytes at a position as one symbol each.
func (c *cursor) bytes(p []byte, at int64) {
	a := c.a
	for i := 0; i < len(p); i++ {
		if c.state == 0 && c.n-c.begin >= int64(a.gate) {
			// Bytes that begin no pattern are skipped without a step each.
			last, from := c.last, i
			for i < len(p) && !a.mayStart(last<<8|uint32(p[i])) {
				last = last<<8 | uint32(p[i])
				i++
			}
			c.last, c.n, c.to = last, c.n+int64(i-from), at+int64(i)
			for back := int64(1); back <= min(int64(i-from), int64(a.gate)); back++ {
				c.ring[(c.n-back)&int64(len(c.ring)-1)] = c.to - back
			}
			if i == len(p) {
				return
			}
		}
		c.step(p[i], at+int64(i), at+int64(i)+1)
	}
}

// reset forgets the input: no match goes across this place.
func (c *cursor) reset() { c.state, c.begin = 0, c.n }

func (c *cursor) walk(b byte) {
	s := c.state
	if s == 0 {
		if c.n-c.begin < int64(c.a.gate) {
			return
		}
		s = c.recent(c.a.gate)
	} else {
		s = c.a.next(s, b)
	}
	d := c.a.depth[s]
	if int(d) < c.a.gate {
		c.state = 0
		return
	}
	c.state = s
	if int(d) == len(c.ring) {
		c.grow()
	}
	if n := c.a.ends(s, c.n-c.whole); n > 0 {
		c.hit(span{c.start(int64(n)), c.to})
	}
}

// recent returns the state after the last k symbols.
func (c *cursor) recent(k int) (s int32) {
	mask := byte(1<<c.a.width - 1)
	for k > 0 {
		k--
		s = c.a.next(s, byte(c.last>>(uint(k)*c.a.width))&mask)
	}
	return s
}

// start returns the position at which the symbol back symbols ago begins; the last
// symbol is 1 back.
func (c *cursor) start(back int64) int64 { return c.ring[(c.n-back)&int64(len(c.ring)-1)] }

func (c *cursor) grow() {
	ring := make([]int64, 2*len(c.ring))
	for back := int64(1); back <= int64(len(c.ring)) && back <= c.n; back++ {
		ring[(c.n-back)&int64(len(ring)-1)] = c.start(back)
	}
	c.ring = ring
}

func (c *cursor) hit(s span) {
	if k := len(c.found) - 1; k >= 0 && s.from <= c.found[k].to && s.from >= c.found[k].from {
		c.found[k].to = s.to
		return
	}
	c.found = append(c.found, s)
}

// undecided returns the position of the first possible begin of a match that ends
// behind end, or end if there is none. A match shorter than the gate counts only if
// eager is set and it touches end; otherwise nearly every line would wait for the
// next one. If such a match does go on, everything except those few symbols is
// removed.
func (c *cursor) undecided(end int64, eager bool) int64 {
	if end-c.to > maxGap {
		return end
	}
	s := c.state
	if s == 0 {
		if !eager || c.to != end {
			return end
		}
		s = c.recent(int(min(c.n-c.begin, int64(c.a.gate-1))))
	}
	for s != 0 && c.a.first[s] == c.a.first[s+1] {
		s = c.a.fail[s] // it is a whole pattern; a match that may go on is shorter
	}
	if d := int64(c.a.depth[s]); d > 0 && (eager && c.to == end || d >= int64(c.a.gate)) {
		return c.start(d)
	}
	return end
}

func (s *shadow) undecided(end int64) int64 {
	if !s.apart {
		return end
	}
	return s.cursor.undecided(end, false)
}
