package kb

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// index is what a search reads.
type index interface {
	// pages is how many pages the repository has.
	pages() (int64, error)
	// words are the lists of the dictionary, by trigram.
	words(gs []gram) (map[gram][]byte, error)
	// posts are the lists of pages, by word.
	posts(words []string) (map[string][]block, error)
	// latest are the pages of these numbers: newest first, then by the bytes of the slug; at
	// most so many.
	latest(ords []int64, most int) ([]place, error)
}

// place is a page in the order of a search.
type place struct {
	Ord, UpdatedAt int64
	Slug           string
	Score          int `db:"-"`
}

// search ranks the pages of a repository. It also returns the words that it took for each
// word of the query.
func search(in index, q string, limit int) ([]place, [][]match, error) {
	words := queryWords(q)
	if len(words) == 0 {
		return nil, nil, nil
	}
	pages, err := in.pages()
	if err != nil || pages == 0 {
		return nil, nil, err
	}
	matches, err := alike(in, words)
	if err != nil {
		return nil, nil, err
	}
	need := map[string]bool{}
	for _, ms := range matches {
		for _, m := range ms {
			need[m.Term] = true
		}
	}
	posts, err := in.posts(slices.Sorted(maps.Keys(need)))
	if err != nil {
		return nil, nil, err
	}
	sum, total := sums(words, matches, posts, int(pages))
	if total == 0 {
		return nil, nil, nil
	}
	var all []place
	for o, s := range sum {
		if score := s * 1000 / total; score >= minScore {
			all = append(all, place{Ord: int64(o), Score: score})
		}
	}
	out, err := inOrder(in, all, limit)
	return out, matches, err
}

// alike finds the words of the repository that are most like each word of a query.
func alike(in index, words []word) ([][]match, error) {
	var want []gram
	for _, w := range words {
		want = append(want, grams(w.Text)...)
	}
	slices.Sort(want)
	lists, err := in.words(slices.Compact(want))
	if err != nil {
		return nil, err
	}
	out := make([][]match, len(words))
	for i, w := range words {
		mine := grams(w.Text)
		shared := map[string]int{}
		for _, g := range mine {
			eachWord(lists[g], func(t []byte) { shared[string(t)]++ })
		}
		var ms []match
		for t, n := range shared {
			// A bound first: to count the trigrams of a word costs more.
			if 1000*n/len(mine) < minSim && !strings.Contains(t, w.Text) {
				continue
			}
			if s := sim(w.Text, t, n, len(mine), len(grams(t))); s >= minSim {
				ms = append(ms, match{t, s})
			}
		}
		out[i] = best(ms, len(words))
	}
	return out, nil
}

// sums adds up what the matches of each word are worth in each page, by its number, and
// what they could be worth at most.
func sums(words []word, matches [][]match, posts map[string][]block, pages int) (sum []int, total int) {
	var of []int // what the present word is worth in each page
	for i, w := range words {
		having := 1
		if len(matches[i]) > 0 {
			having = 0
			for _, b := range posts[matches[i][0].Term] {
				eachPost(b.Posts, func(int64, byte) { having++ })
			}
		}
		wt := weight(w, pages, having)
		total += wt * 1000
		clear(of)
		for _, m := range matches[i] {
			for _, b := range posts[m.Term] {
				eachPost(b.Posts, func(o int64, e byte) {
					o |= b.Block << blockBits
					if int(o) >= len(of) {
						of = append(of, make([]int, int(o)+1-len(of)+1024)...)
					}
					of[o] = max(of[o], value(m.Sim, e))
				})
			}
		}
		if len(sum) < len(of) {
			sum = append(sum, make([]int, len(of)-len(sum))...)
		}
		for o, v := range of {
			sum[o] += wt * v
		}
	}
	return sum, total
}

// inOrder sorts by score, and pages of one score as latest does. Dates and slugs are read
// score by score, of those alone that the limit has room for.
func inOrder(in index, all []place, limit int) (out []place, err error) {
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(b.Score, a.Score) })
	for len(all) > 0 && len(out) < limit {
		n := 1
		for n < len(all) && all[n].Score == all[0].Score {
			n++
		}
		ords := make([]int64, n)
		for i := range ords {
			ords[i] = all[i].Ord
		}
		next, err := in.latest(ords, limit-len(out))
		if err != nil {
			return nil, err
		}
		for _, p := range next {
			p.Score = all[0].Score
			out = append(out, p)
		}
		all = all[n:]
	}
	return out, nil
}

// newest sorts pages as latest does, and cuts them.
func newest(all []place, most int) []place {
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), strings.Compare(a.Slug, b.Slug))
	})
	return all[:min(len(all), most)]
}
