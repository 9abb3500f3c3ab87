package inquiry

import (
	"slices"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/citation"
	"yardmaster/internal/lazy"
)

// mostTerms is how many words of a question are looked for.
const mostTerms = 12

var (
	compound = lazy.New(`[\pL\pN_]+(?:[-./][\pL\pN_]+)+`)
	single   = lazy.New(`[\pL\pN_]+`)
	// general are words of questions about any repository.
	general = map[string]bool{"project": true, "repository": true, "repo": true, "code": true, "file": true, "work": true, "program": true}
)

// termsOf are the words of a question to look for, in lower case and without endings: those that
// look like names of a program first.
func termsOf(question string) (terms []string) {
	var plain []string
	add := func(to *[]string, w string) {
		w = strings.ToLower(w)
		stem := citation.Stem(w)
		if utf8.RuneCountInString(w) < 2 || citation.Stopped(w) || general[w] || general[stem] {
			return
		}
		if utf8.RuneCountInString(stem) >= 3 {
			w = stem
		}
		if !slices.Contains(terms, w) && !slices.Contains(*to, w) {
			*to = append(*to, w)
		}
	}
	for _, w := range compound.FindAllString(question, -1) {
		if w = strings.ToLower(w); !slices.Contains(terms, w) {
			terms = append(terms, w)
		}
	}
	for _, w := range single.FindAllString(question, -1) {
		parts := citation.Parts(w)
		if len(parts) > 2 || strings.Contains(w, "_") {
			add(&terms, w)
		}
		for _, p := range parts {
			for piece := range strings.SplitSeq(p, "_") {
				add(&plain, piece)
			}
		}
	}
	for _, w := range plain {
		if !slices.Contains(terms, w) {
			terms = append(terms, w)
		}
	}
	return terms[:min(len(terms), mostTerms)]
}
