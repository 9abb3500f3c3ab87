package scrub

import (
	"bytes"
	"math/bits"
	"sort"
)

// pattern is a sequence of symbols to find.
type pattern struct {
	text string
	// loose permits other bytes, such as line ends, between the symbols. Only
	// patterns of 8 to 15 symbols may be strict.
	loose bool
}

// automaton finds many patterns at once with the algorithm of Aho and Corasick
// ("Efficient string matching", 1975). Its state is the longest end of the input
// that begins a pattern, so a symbol costs the same for any number of patterns and
// overlaps. The children of a state are neighbours, so a state takes 21 bytes.
type automaton struct {
	label  []byte  // of the edge that leads to a state
	first  []int32 // the children of s are first[s] to first[s+1]
	fail   []int32 // the state of the longest proper end
	depth  []int32
	loose  []int32 // length of the longest loose pattern with which the state ends, or 0
	strict []uint8 // bit n is set if the state ends with a strict pattern of 8+n symbols

	// A set bit says that a pattern may begin with the symbols of that hash. Most
	// text is rejected here.
	starts []uint64
	shift  uint // of the hashes, in bits
	gate   int  // number of symbols in a hash
	width  uint // bits of a symbol: 8, or 4 for digits of base 16
}

func newAutomaton(patterns map[string]pattern, width uint) *automaton {
	a := &automaton{width: width, gate: int(32 / width)}
	all := make([]pattern, 0, len(patterns))
	for _, p := range patterns {
		all = append(all, p)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].text < all[j].text })
	size := max(bits.Len(uint(len(all)))+6, 10) // at most one of 64 bits is set
	a.starts, a.shift = make([]uint64, 1<<(size-6)), uint(32-size)
	for _, p := range all {
		var key uint32
		for i := range a.gate {
			key = key<<width | uint32(p.text[i])
		}
		h := a.hash(key)
		a.starts[h/64] |= 1 << (h % 64)
	}
	// States are made level by level, so that the children of a state are
	// neighbours. A state is the range of the sorted patterns that begin with it.
	type span struct{ from, to int32 }
	spans := []span{{0, int32(len(all))}}
	a.add(0, 0)
	for s := int32(0); int(s) < len(a.label); s++ {
		a.first[s] = int32(len(a.label))
		at, end, d := spans[s].from, spans[s].to, a.depth[s]
		for at < end && len(all[at].text) == int(d) { // at most one, because all patterns differ
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
		// All states of smaller depth are complete, among them the one that this
		// state fails to.
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

// next returns the state after one more symbol. n symbols take at most 2n steps,
// because each failure gives back depth that an earlier symbol has gained.
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

// ends returns the length of the longest pattern with which a state ends, or 0.
// unbroken is the number of last symbols without other bytes between them.
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
