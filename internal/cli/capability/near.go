package capability

import (
	"slices"
	"strings"
)

// mostNear is the largest number of words that are suggested for one.
const mostNear = 3

// Near are the words that somebody may have meant who wrote one that there is not. A word is
// near if few letters of it are wrong, or if it begins with the one that was written.
func Near(written string, among []string) []string {
	type candidate struct {
		word  string
		edits int
	}
	written = strings.ToLower(written)
	if len(written) < 2 || len(written) > 100 {
		return nil
	}
	most := min(max(len(written)/4, 1), 3)
	var all []candidate
	for _, word := range among {
		n := Edits(written, strings.ToLower(word))
		if n > most && len(written) > 2 && strings.HasPrefix(word, written) {
			n = most
		}
		if n <= most {
			all = append(all, candidate{word, n})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		if a.edits != b.edits {
			return a.edits - b.edits
		}
		return strings.Compare(a.word, b.word)
	})
	var words []string
	for _, c := range all[:min(len(all), mostNear)] {
		if c.edits == all[0].edits {
			words = append(words, c.word)
		}
	}
	return words
}

// Meant is the question that follows a word that there is not; "" if no word is near.
// before stands before each word that is suggested.
func Meant(written, before string, among []string) string {
	words := Near(written, among)
	if len(words) == 0 {
		return ""
	}
	for i := range words {
		words[i] = before + words[i]
	}
	return "; did you mean " + strings.Join(words, " or ") + "?"
}

// Edits is the number of letters to insert, remove, replace, or swap with the next one, that
// make one word of another: the optimal string alignment distance, in bytes.
func Edits(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, now := rows[(i+2)%3], rows[i%3], rows[(i+1)%3]
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
