package kb

import (
	"strings"
	"unicode/utf8"
)

const (
	excerptBytes = 240
	// mostStarts bounds the places at which an excerpt may begin.
	mostStarts = 5000
)

// Mark is a part of an excerpt that matches. It stands beside the text: an excerpt is never
// HTML, whatever the page holds.
type Mark struct {
	_     struct{} `doc:"A part of an excerpt that matches." schema:"KnowledgeMark"`
	Start int      `json:"start" example:"4" doc:"its first byte"`
	End   int      `json:"end" example:"9" doc:"the byte behind its last"`
}

// found is where a word that the search took for one of the query stands in a text.
type found struct{ start, end, word, sim int }

// excerpt is the window of a text that holds the most different words of a query, the
// earliest of equal ones, cut between characters. matches are the words that the search
// took for each word of the query.
func excerpt(body string, matches [][]match) Excerpt {
	type alike struct{ word, sim int }
	known := map[string]alike{}
	for i, ms := range matches {
		for _, m := range ms {
			if m.Sim > known[m.Term].sim {
				known[m.Term] = alike{i, m.Sim}
			}
		}
	}
	var all []found
	terms(body, func(t term) {
		if k, ok := known[t.Text]; ok {
			all = append(all, found{t.Start, t.End, k.word, k.sim})
		}
	})
	start := 0
	if len(all) > 0 {
		start = max(0, all[richest(all, len(matches))].start-excerptBytes/6)
	}
	end := min(len(body), start+excerptBytes)
	for start > 0 && !utf8.RuneStart(body[start]) {
		start--
	}
	for end < len(body) && !utf8.RuneStart(body[end]) {
		end--
	}
	if start > 0 { // begin at a word where one begins near
		if i := strings.IndexAny(body[start:end], " \n"); i >= 0 && i < excerptBytes/8 {
			start += i + 1
		}
	}
	out := Excerpt{Text: body[start:end], Marks: []Mark{}}
	for _, a := range all {
		if a.start >= start && a.end <= end && (len(out.Marks) == 0 || a.start-start >= out.Marks[len(out.Marks)-1].End) {
			out.Marks = append(out.Marks, Mark{Start: a.start - start, End: a.end - start})
		}
	}
	return out
}

// richest is the index of the word at which the best window begins.
func richest(all []found, words int) int {
	bestAt, bestSum := 0, -1
	got := make([]int, words)
	for i := range all[:min(len(all), mostStarts)] {
		clear(got)
		for j := i; j < len(all) && all[j].end <= all[i].start+excerptBytes; j++ {
			got[all[j].word] = max(got[all[j].word], all[j].sim)
		}
		sum := 0
		for _, s := range got {
			sum += s
		}
		if sum > bestSum {
			bestAt, bestSum = i, sum
		}
	}
	return bestAt
}
