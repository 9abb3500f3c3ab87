package inquiry

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/bits"
	"path"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/citation"
	"yardmaster/internal/codehost"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
)

// What a model is shown at most.
const (
	mostFiles   = 12
	mostBytes   = 48_000 // of lines
	mostOfFile  = mostBytes / 3
	wholeFile   = 80 // lines up to which a file is shown whole
	linesBefore = 8  // of a line that has words of the question
	linesAfter  = 16
	searchTime  = 12 * time.Second
)

// look finds the lines of the default branch that a question is about. Its commit is "" if
// there is none.
func (s *Service) look(ctx context.Context, r repo.Ref, question string, pages []Page) (*evidence, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	e, err := s.search(ctx, r, question, pages)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fault.New(fault.Unavailable, "code-host-unavailable",
			"The repository could not be read in time. Ask again in a minute: it is being fetched.").Because(err)
	}
	return e, err
}

func (s *Service) search(ctx context.Context, r repo.Ref, question string, pages []Page) (*evidence, error) {
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return nil, err
	}
	in, able := host.(codehost.Searcher)
	if !able {
		return nil, codehost.ErrCannot
	}
	e := &evidence{}
	sha, err := head(ctx, host, r)
	if err != nil || sha == "" {
		return e, err
	}
	tree, err := in.Tree(ctx, r.HostRepo(), sha)
	if err != nil {
		return nil, err
	}
	e.commit, e.cut = tree.Commit, tree.Cut
	terms := termsOf(question)
	searching, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	found, err := in.Search(searching, r.HostRepo(), e.commit, terms)
	if err != nil {
		return nil, err
	}
	e.cut = e.cut || found.Cut
	hits := count(tree, found, terms, pages)
	for _, p := range hits.best() {
		content, _, err := host.ReadFile(ctx, r.HostRepo(), e.commit, p)
		if errors.Is(err, codehost.ErrTooLarge) || errors.Is(err, codehost.ErrNotFound) {
			continue // or its name is none that a citation can have
		}
		if err != nil {
			return nil, err
		}
		if f := newFile(p, content); f != nil {
			f.blob = tree.Files[p]
			e.files = append(e.files, f)
		}
	}
	e.show(terms, hits.weight)
	return e, nil
}

// hits are the files that have words of a question.
type hits struct {
	score  map[string]int // by path
	weight map[string]int // by word: the rarer, the more
}

// count ranks the files of a tree.
func count(tree codehost.Tree, found codehost.Found, terms []string, pages []Page) hits {
	lines := map[string]map[string]int{} // by word and path
	for _, t := range terms {
		lines[t] = map[string]int{}
	}
	for _, l := range found.Lines {
		low := strings.ToLower(l.Text)
		for _, t := range terms {
			if strings.Contains(low, t) {
				lines[t][l.Path]++
			}
		}
	}
	h := hits{score: map[string]int{}, weight: map[string]int{}}
	for _, t := range terms {
		for p := range tree.Files {
			if strings.Contains(strings.ToLower(p), t) {
				lines[t][p] += 4
			}
		}
		h.weight[t] = max(1, bits.Len(uint(len(tree.Files)/max(1, len(lines[t])))))
		for p, n := range lines[t] {
			h.score[p] += h.weight[t] * (2 + min(3, bits.Len(uint(n))))
		}
	}
	most := slices.Max(append(slices.Collect(maps.Values(h.score)), 1))
	for _, page := range pages {
		for _, p := range page.Files {
			h.score[p] += most / 2 // what people wrote about it leads there
		}
	}
	if len(terms) == 0 || len(h.score) > 0 {
		for p := range tree.Files {
			if strings.HasPrefix(strings.ToLower(p), "readme") {
				h.score[p]++
			}
		}
	}
	for p := range h.score {
		if _, is := tree.Files[p]; !is || dull(p) {
			delete(h.score, p)
		} else if aside(p) {
			h.score[p] = (h.score[p] + 3) / 4
		}
	}
	return h
}

// dull tells whether nobody reads a file.
func dull(p string) bool {
	switch path.Ext(p) {
	case ".lock", ".sum", ".svg", ".map", ".snap", ".min":
		return true
	}
	base := path.Base(p)
	return strings.Contains(base, ".min.") || base == "package-lock.json" || base == "pnpm-lock.yaml"
}

// aside tells whether a file is of somebody else, or tells by an example what another one is.
func aside(p string) bool {
	for part := range strings.SplitSeq(path.Dir(p), "/") {
		switch part {
		case "vendor", "node_modules", "third_party", "dist", "testdata", "fixtures", "__snapshots__":
			return true
		}
	}
	base := path.Base(p)
	return strings.Contains(base, "_test.") || strings.Contains(base, ".test.") || strings.Contains(base, ".spec.") ||
		strings.HasPrefix(base, "test_")
}

// best are the files to be read, best first.
func (h hits) best() []string {
	all := slices.Collect(maps.Keys(h.score))
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(h.score[b], h.score[a]), strings.Compare(a, b))
	})
	return all[:min(len(all), mostFiles)]
}

// show chooses the lines, file by file, until there is no more room. A file without any is left
// out.
func (e *evidence) show(terms []string, weight map[string]int) {
	left := mostBytes
	looked := make([]term, len(terms))
	for i, t := range terms {
		looked[i] = term{t, weight[t], citation.Introducer(t)}
	}
	for _, f := range e.files {
		left -= f.choose(looked, min(left, mostOfFile))
	}
	e.files = slices.DeleteFunc(e.files, func(f *file) bool { return !slices.Contains(f.shown, true) })
}

// term is a word of a question.
type term struct {
	text       string
	weight     int
	introduces func(line string) bool
}

// choose shows the lines around those with most words, as far as there is room.
func (f *file) choose(terms []term, room int) (bytes int) {
	if len(f.text) <= wholeFile && f.size(0, len(f.text)) <= room {
		return f.show(0, len(f.text))
	}
	type line struct{ no, score int }
	var all []line
	for i, text := range f.text {
		low, score := strings.ToLower(text), 0
		for _, t := range terms {
			if strings.Contains(low, t.text) {
				score += 2 * t.weight
				if t.introduces(low) {
					score += t.weight
				}
			}
		}
		if score > 0 {
			all = append(all, line{i, score})
		}
	}
	if len(all) == 0 { // its name is what matters: its beginning says what it is
		all = []line{{0, 1}}
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(b.score, a.score) })
	for _, l := range all {
		if f.shown[l.no] {
			continue
		}
		from, to := max(0, l.no-linesBefore), min(len(f.text), l.no+linesAfter+1)
		if f.size(from, to) > room-bytes {
			break
		}
		bytes += f.show(from, to)
	}
	return bytes
}

// size is about how many bytes lines are when they are shown.
func (f *file) size(from, to int) (bytes int) {
	for _, line := range f.text[from:to] {
		bytes += min(len(line), 4*mostLine) + 8
	}
	return bytes
}
