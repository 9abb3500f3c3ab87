package scrub

import (
	"bytes"
	"math/bits"
	"sort"
)

// pattern is a sequence of symbols to find.
type pattern struct {
	text string
	// loose tells that other bytes, such as line ends, may lie between the
	// symbols. Only patterns of 8 to 15 symbols may do without.
	loose bool
}

// automaton finds many patterns at once, the way of Aho and Corasick ("Efficient
// string matching", 1975): its state is the longest end of what was read that
// is the start of a pattern, so that a symbol costs the same however many
// patterns there are and however much they overlap. The children of a state
// are neighbours, which makes a state 21 bytes.
type automaton struct {
	label  []byte  // of the edge that leads to a state
	first  []int32 // the children of s are first[s] to first[s+1]
	fail   []int32 // the state of the longest proper end
	depth  []int32
	loose  []int32 // the longest loose pattern that the state ends with, or 0
	strict []uint8 // bit n is set if it ends with a strict pattern of 8+n symbols

	// A set bit says that a pattern may begin with the symbols that hash there.
	// Most text never gets past this.
	starts []uint64
	shift  uint // of hashes
	gate   int  // so many symbols
	width  uint // bits of a symbol: 8, or 4 for digits of hex
}

func newAutomaton(patterns map[string]pattern, width uint) *automaton {
	a := &automaton{width: width, gate: int(32 / width)}
	all := make([]pattern, 0, len(patterns))
	for _, p := range patterns {
		all = append(all, p)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].text < all[j].text })
	size := max(bits.Len(uint(len(all)))+6, 10) // of the bits, one in 64 or less is set
	a.starts, a.shift = make([]uint64, 1<<(size-6)), uint(32-size)
	for _, p := range all {
		var key uint32
		for i := range a.gate {
			key = key<<width | uint32(p.text[i])
		}
		h := a.hash(key)
		a.starts[h/64] |= 1 << (h % 64)
	}
	// Level by level, so that children of one state follow each other. A state
	// is the range of the sorted patterns that begin with it.
	type span struct{ from, to int32 }
	spans := []span{{0, int32(len(all))}}
	a.add(0, 0)
	for s := int32(0); int(s) < len(a.label); s++ {
		a.first[s] = int32(len(a.label))
		at, end, d := spans[s].from, spans[s].to, a.depth[s]
		for at < end && len(all[at].text) == int(d) { // one: they differ
			if all[at].loose {
				a.loose[s] = d
			} else {
				a.strict[s] |= 1 << (d - MinLength)
			}
			at++
		}
		for at < end {
			b, to := all[at].text[d], at+1
			for to < end && all[to].text[d] == b {
				to++
			}
			child := a.add(b, d+1)
			spans = append(spans, span{at, to})
			if s != 0 {
				a.fail[child] = a.next(a.fail[s], b)
			}
			at = to
		}
		// All shorter states are done, those that this one fails to among them.
		f := a.fail[s]
		a.loose[s] = max(a.loose[s], a.loose[f])
		a.strict[s] |= a.strict[f]
	}
	a.first = append(a.first, int32(len(a.label)))
	return a
}

func (a *automaton) add(label byte, depth int32) int32 {
	a.label = append(a.label, label)
	a.first = append(a.first, 0)
	a.fail = append(a.fail, 0)
	a.depth = append(a.depth, depth)
	a.loose = append(a.loose, 0)
	a.strict = append(a.strict, 0)
	return int32(len(a.label)) - 1
}

func (a *automaton) hash(key uint32) uint32 { return key * 0x9E3779B1 >> (a.shift & 31) }

// mayStart tells whether a pattern may begin with the symbols of key.
func (a *automaton) mayStart(key uint32) bool {
	h := a.hash(key)
	return a.starts[h/64]>>(h%64)&1 != 0
}

// next is the state after one more symbol. A walk over many takes no more steps
// than twice their number: what fails gives back depth that was gained before.
func (a *automaton) next(s int32, b byte) int32 {
	for {
		at, end := a.first[s], a.first[s+1]
		if end-at > 8 {
			if i := bytes.IndexByte(a.label[at:end], b); i >= 0 {
				return at + int32(i)
			}
			at = end
		}
		for ; at < end; at++ {
			if a.label[at] == b {
				return at
			}
		}
		if s == 0 {
			return 0
		}
		s = a.fail[s]
	}
}

// ends gives the length of the longest pattern that a state ends with, or 0,
// where unbroken symbols have nothing between them.
func (a *automaton) ends(s int32, unbroken int64) int32 {
	n := a.loose[s]
	if m := a.strict[s]; m != 0 {
		if k := unbroken - MinLength + 1; k < 8 {
			m &= 1<<max(k, 0) - 1
		}
		if m != 0 {
			n = max(n, int32(MinLength+bits.Len8(m)-1))
		}
	}
	return n
}
