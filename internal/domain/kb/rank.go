package kb

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// All numbers of the order are integers. A sum of floats may be fused on one processor and
// not on another, and then two nodes of one installation would order two pages apart.

// formula is the version of words and order. A release that changes either raises it.
const formula = 1

const (
	minSim   = 300   // per mille: a word less alike than this is another word
	minScore = 300   // of 1000: below, the page does not answer the question
	maxWords = 16    // of a query; the first ones count
	maxTerms = 16384 // different words of one page; later ones are not looked up
)

// The fields of a page, by how much a word in them counts.
const (
	inBody  = 1
	inHead  = 2 // a line that begins with #
	inTitle = 3 // title and slug
)

// text is what is looked up of a page.
type text struct{ Slug, Title, Body string }

// entries are the words of a page, each with its field and how often it occurs:
// field<<2 | min(3, log2 count). No entry is 0.
func entries(p text) map[string]byte {
	type seen struct{ field, n int }
	all := make(map[string]seen, 512)
	put := func(s string, field int) {
		terms(s, func(t term) {
			e, old := all[t.Text]
			if !old && len(all) >= maxTerms {
				return
			}
			e.field, e.n = max(e.field, field), e.n+1
			all[t.Text] = e
		})
	}
	put(p.Title, inTitle)
	put(p.Slug, inTitle)
	for line := range strings.Lines(p.Body) {
		if strings.HasPrefix(line, "#") {
			put(line, inHead)
		} else {
			put(line, inBody)
		}
	}
	out := make(map[string]byte, len(all))
	for t, e := range all {
		out[t] = byte(e.field<<2 | min(3, bits.Len(uint(e.n))-1))
	}
	return out
}

// word is a word of a query.
type word struct {
	Text   string
	Weight int // 2 for a whole word, 1 for a part of one
}

func queryWords(q string) []word {
	var out []word
	terms(q, func(t term) {
		w := word{t.Text, 1}
		if t.Whole {
			w.Weight = 2
		} else if r, n := utf8.DecodeRuneInString(q[t.Start:]); isDense(r) && t.Start+n == t.End {
			if besideDense(q, t.Start, t.End) {
				return // it is in the pairs already
			}
			w.Weight = 2
		}
		for i, o := range out {
			if o.Text == w.Text {
				out[i].Weight = max(o.Weight, w.Weight)
				return
			}
		}
		if len(out) < maxWords {
			out = append(out, w)
		}
	})
	return out
}

func besideDense(q string, a, b int) bool {
	left, _ := utf8.DecodeLastRuneInString(q[:a])
	right, _ := utf8.DecodeRuneInString(q[b:])
	return isDense(left) || isDense(right)
}

// sim is how much alike a word of a query and one of a repository are, per mille: the
// share of trigrams that both have, or, for a word that contains the other, what share of
// it that is.
func sim(q, t string, shared, nq, nt int) int {
	s := 1000 * shared / (nq + nt - shared)
	if n := utf8.RuneCountInString(q); n >= 3 && len(t) > len(q) && strings.Contains(t, q) {
		s = max(s, 400+500*n/utf8.RuneCountInString(t))
	}
	return s
}

// match is a word of the repository that stands for one of a query.
type match struct {
	Term string
	Sim  int
}

// best keeps the words most alike, equal ones in the order of their bytes. A word alone
// stands for 64 words of the repository, each of 16 for 6: a query costs the same however
// long it is.
func best(ms []match, words int) []match {
	slices.SortFunc(ms, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.Sim, a.Sim), strings.Compare(a.Term, b.Term))
	})
	return ms[:min(len(ms), max(6, 64/words))]
}

// value is what one match is worth in one page, at most 1000.
func value(sim int, e byte) int {
	field, often := int(e>>2), int(e&3)
	return sim * ([4]int{0, 760, 860, 940}[field] + 20*often) / 1000
}

// weight is how much a word of a query counts, by how rare its best match is.
func weight(w word, pages, having int) int { return w.Weight * bits.Len(uint(pages/max(having, 1))) }
