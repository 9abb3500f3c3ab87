package kb

import (
	"encoding/binary"
	"maps"
	"slices"
)

// blockBits is how many pages one list holds, as a power of two: one write touches the rows
// of one block.
const blockBits = 12

// block is the list of the pages of one block that have a word.
type block struct {
	Term  string
	Block int64
	Posts []byte
}

// A list of pages holds, for each, its distance to the one before as a varint, and its
// entry in one byte.
func appendPost(b []byte, last, ord int64, e byte) []byte {
	return append(binary.AppendUvarint(b, uint64(ord-last)), e)
}

func eachPost(b []byte, f func(ord int64, e byte)) {
	var ord int64
	for len(b) > 0 {
		d, n := binary.Uvarint(b)
		if n <= 0 || n >= len(b) {
			return
		}
		ord += int64(d)
		f(ord, b[n])
		b = b[n+1:]
	}
}

// setPost adds, changes or, for the entry 0, takes out one page; nil if nothing is left.
func setPost(b []byte, ord int64, e byte) []byte {
	var out []byte
	var last int64
	put := func(o int64, e byte) {
		out = appendPost(out, last, o, e)
		last = o
	}
	done := e == 0
	eachPost(b, func(o int64, old byte) {
		if !done && o >= ord {
			put(ord, e)
			done = true
		}
		if o != ord {
			put(o, old)
		}
	})
	if !done {
		put(ord, e)
	}
	return out
}

// packWords makes the list of the words that have a trigram: sorted, each as what it shares
// with the one before and what follows; nil for none.
func packWords(words []string) []byte {
	var out []byte
	last := ""
	for _, w := range words {
		n := 0
		for n < len(w) && n < len(last) && w[n] == last[n] {
			n++
		}
		out = binary.AppendUvarint(out, uint64(n))
		out = binary.AppendUvarint(out, uint64(len(w)-n))
		out = append(out, w[n:]...)
		last = w
	}
	return out
}

func eachWord(b []byte, f func(w []byte)) {
	var buf [4 * maxTerm]byte
	w := buf[:0]
	for len(b) > 0 {
		share, k := binary.Uvarint(b)
		if k <= 0 {
			return
		}
		n, j := binary.Uvarint(b[k:])
		if j <= 0 || int(share) > len(w) || uint64(len(b)-k-j) < n {
			return
		}
		b = b[k+j:]
		w = append(w[:share], b[:n]...)
		b = b[n:]
		f(w)
	}
}

// changed are the words of which the entries of a page differ, with their entry after the
// change; 0: the word is gone.
func changed(before, after map[string]byte) map[string]byte {
	diff := map[string]byte{}
	for t, e := range after {
		if before[t] != e {
			diff[t] = e
		}
	}
	for t := range before {
		if _, ok := after[t]; !ok {
			diff[t] = 0
		}
	}
	return diff
}

// posting is a change of the lists of a repository.
type posting struct {
	put     []block                  // lists to write
	drop    []string                 // words whose list of this block is gone
	grams   map[gram]map[string]bool // words that come into the dictionary: true, or leave it
	ordered []gram                   // the keys of grams
}

// postings works out what changes with the words of one page. have are the lists of these
// words, of all blocks.
func postings(ord int64, diff map[string]byte, have map[string][]block) posting {
	out := posting{grams: map[gram]map[string]bool{}}
	no, low := ord>>blockBits, ord&(1<<blockBits-1)
	for _, t := range slices.Sorted(maps.Keys(diff)) {
		var mine []byte
		others := 0
		for _, b := range have[t] {
			if b.Block == no {
				mine = b.Posts
			} else {
				others++
			}
		}
		next := setPost(mine, low, diff[t])
		if len(next) > 0 {
			out.put = append(out.put, block{t, no, next})
		} else {
			out.drop = append(out.drop, t)
		}
		// The dictionary loses a word with its last page: a word that no page has would
		// take a place among those most alike.
		come, gone := len(have[t]) == 0 && len(next) > 0, len(next) == 0 && others == 0
		if !come && !gone {
			continue
		}
		for _, g := range grams(t) {
			if out.grams[g] == nil {
				out.grams[g] = map[string]bool{}
			}
			out.grams[g][t] = come
		}
	}
	out.ordered = slices.Sorted(maps.Keys(out.grams))
	return out
}

// reword is a list of the dictionary with the words of change added (true) or taken out.
func reword(list []byte, change map[string]bool) []byte {
	var words []string
	eachWord(list, func(w []byte) {
		if keep, ok := change[string(w)]; !ok || keep {
			words = append(words, string(w))
		}
	})
	for w, come := range change {
		if i, ok := slices.BinarySearch(words, w); come && !ok {
			words = slices.Insert(words, i, w)
		}
	}
	return packWords(words)
}
