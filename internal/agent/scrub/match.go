package scrub

import (
	"slices"
	"strings"
)

// matcher finds many patterns at once, the way of Wu and Manber: two bytes at
// the end of a window as long as the shortest pattern tell how far the window
// can move without missing a start. Its size does not depend on how long the
// patterns are, unlike an automaton's.
type matcher struct {
	window  int              // the shortest pattern's length
	shift   *[1 << 16]uint8  // by the last two bytes of the window; 0 is "look"
	byStart map[uint16][]int // by the first two bytes: patterns, longest first
	first   [256]bool        // whether a pattern starts so
	all     []string
	longest int
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

func newMatcher(patterns map[string]bool) *matcher {
	m := &matcher{byStart: map[uint16][]int{}}
	for p := range patterns {
		m.all = append(m.all, p)
	}
	if len(m.all) == 0 {
		return m
	}
	slices.SortFunc(m.all, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	m.longest, m.window = len(m.all[0]), min(len(m.all[len(m.all)-1]), 255)
	m.shift = new([1 << 16]uint8)
	for i := range m.shift {
		m.shift[i] = uint8(m.window - 1)
	}
	for i, p := range m.all {
		for at := 1; at < m.window; at++ {
			k := pair(p[at-1], p[at])
			m.shift[k] = min(m.shift[k], uint8(m.window-1-at))
		}
		k := pair(p[0], p[1])
		m.byStart[k] = append(m.byStart[k], i)
		m.first[p[0]] = true
	}
	return m
}

// find gives the first start of a pattern in b at or after from, or -1.
func (m *matcher) find(b []byte, from int) int {
	if len(m.all) == 0 {
		return -1
	}
	for end := from + m.window - 1; end < len(b); {
		if s := m.shift[pair(b[end-1], b[end])]; s > 0 {
			end += int(s)
			continue
		}
		if start := end - m.window + 1; m.length(b[start:]) > 0 {
			return start
		}
		end++
	}
	return -1
}

// length gives the length of the longest pattern that b starts with, or 0.
func (m *matcher) length(b []byte) int {
	if !m.first[b[0]] {
		return 0
	}
	for _, i := range m.byStart[pair(b[0], b[1])] {
		if p := m.all[i]; len(p) <= len(b) && string(b[:len(p)]) == p {
			return len(p)
		}
	}
	return 0
}

// undecided gives the first position of b from which the rest of b is the start
// of a pattern, or len(b).
func (m *matcher) undecided(b []byte) int {
	for i := max(0, len(b)-m.longest+1); i < len(b); i++ {
		if !m.first[b[i]] {
			continue
		}
		rest := b[i:]
		if len(rest) == 1 {
			return i
		}
		for _, j := range m.byStart[pair(rest[0], rest[1])] {
			p := m.all[j]
			if len(p) <= len(rest) {
				break // only shorter ones follow
			}
			if p[:len(rest)] == string(rest) {
				return i
			}
		}
	}
	return len(b)
}

// hole is where redact stopped: inside or right behind a run of bytes that has
// its Mark already.
type hole struct {
	open bool // nothing has been written since the Mark
	cut  int  // so many bytes of what is left belong to the run
}

// redact appends b to out with a Mark for each run of bytes that patterns
// cover; patterns that overlap or touch are one run. Unless last, it stops
// where more bytes could make a pattern, and returns what is left.
func (m *matcher) redact(out, b []byte, h hole, last bool) (done, rest []byte, next hole) {
	limit := len(b)
	if !last {
		limit = m.undecided(b)
	}
	covered := h.cut // what is before it is written or part of a run
	for at := m.find(b, 0); at >= 0 && at < limit; at = m.find(b, at+1) {
		if at > covered || !h.open {
			out = append(out, b[covered:at]...)
			out = append(out, Mark...)
			h.open = true
		}
		covered = max(covered, at+m.length(b[at:]))
	}
	if covered < limit {
		out = append(out, b[covered:limit]...)
		h.open, covered = false, limit
	}
	return out, b[limit:], hole{open: h.open, cut: covered - limit}
}
