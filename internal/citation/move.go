package citation

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
)

// Digest identifies a text of lines; "" is that of none.
type Digest string

// digest is that of a text.
func digest(text string) Digest {
	sum := sha256.Sum256([]byte(text))
	return Digest(hex.EncodeToString(sum[:16]))
}

// whole is the digest of lines that have these digests.
func whole(sums []Digest) Digest {
	var b strings.Builder
	for _, s := range sums {
		b.WriteString(string(s))
	}
	return digest(b.String())
}

// Mark is what is kept of a place, to find its text again where the commit is gone.
type Mark struct {
	Place
	Blob   string // of the file
	Text   Digest // of all lines
	First  Digest // of the first
	Lines  int    // that are not blank
	Length int    // letters and digits in them
	Twins  int    // how often the file had the text
	Nth    int    // which of them it was, from 0
	// Before and After are the nearest lines around it, nearest first.
	Before, After [2]Digest
}

// shortest is the length below which a text, such as a brace, is looked for in its own file only.
const shortest = 40

// State is what became of a mark.
type State string

// The states. A mark that is stale has no place: nothing is guessed.
const (
	Same      State = "same"      // it stands where it stood
	Moved     State = "moved"     // it stands elsewhere in its file
	Elsewhere State = "elsewhere" // it stands in another file
	Edited    State = "edited"    // stale: its file has not got it any more
	Ambiguous State = "ambiguous" // stale: several places are equally good
	Gone      State = "gone"      // stale: its file is gone, and nothing else has it
)

// File is the text of a file as marks see it: its lines without what formatting changes (blanks
// at the ends, runs of blanks, blank lines).
type File struct {
	lines []string
	sums  []Digest
	nos   []int // the number of each in the file
}

// NewFile reads a file.
func NewFile(content string) *File {
	f := &File{}
	for i, l := range strings.Split(content, "\n") {
		if l = flat(l); l != "" {
			f.lines, f.sums, f.nos = append(f.lines, l), append(f.sums, digest(l)), append(f.nos, i+1)
		}
	}
	return f
}

// Mark marks a place of the file; ok is false if it has no line that is not blank.
func (f *File) Mark(at Place, blob string) (m Mark, ok bool) {
	from, _ := slices.BinarySearch(f.nos, at.From)
	to, _ := slices.BinarySearch(f.nos, at.To+1)
	if from >= to {
		return m, false
	}
	m = Mark{Place: at, Blob: blob, Text: whole(f.sums[from:to]), First: f.sums[from], Lines: to - from}
	for _, l := range f.lines[from:to] {
		for _, r := range l {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				m.Length++
			}
		}
	}
	twins := f.having(&m)
	m.Twins, m.Nth = len(twins), slices.Index(twins, from)
	m.Before, m.After = f.around(from, m.Lines)
	return m, true
}

// having lists where the text of a mark begins.
func (f *File) having(m *Mark) (at []int) {
	for i := 0; i+m.Lines <= len(f.sums); i++ {
		if f.sums[i] == m.First && whole(f.sums[i:i+m.Lines]) == m.Text {
			at = append(at, i)
		}
	}
	return at
}

func (f *File) around(i, n int) (before, after [2]Digest) {
	for k := range 2 {
		if i-1-k >= 0 {
			before[k] = f.sums[i-1-k]
		}
		if i+n+k < len(f.sums) {
			after[k] = f.sums[i+n+k]
		}
	}
	return before, after
}

// place is that of n lines from i.
func (f *File) place(path string, i, n int) Place { return Place{path, f.nos[i], f.nos[i+n-1]} }

// choose picks the one of some places where the text of a mark is what was marked; -1 is none.
func (f *File) choose(m *Mark, at []int) int {
	best, score, tie := -1, -1, false
	for _, i := range at {
		before, after := f.around(i, m.Lines)
		s := 0
		for k := range 2 {
			if before[k] == m.Before[k] {
				s++
			}
			if after[k] == m.After[k] {
				s++
			}
		}
		switch {
		case s > score:
			best, score, tie = i, s, false
		case s == score:
			tie = true
		}
	}
	switch {
	case len(at) == 1 && m.Twins == 1:
		if score == 0 && m.Length < shortest {
			return -1 // a short line among strangers is another line
		}
		return best
	case score >= 3 && !tie:
		return best
	case len(at) > 0 && len(at) == m.Twins:
		return at[m.Nth] // none came, none went
	}
	return -1
}

// Trees are the files of two commits: the one of the marks, and the one in which they are found.
type Trees struct {
	// Old and New are the blob of each path. Without Old, whose commit is gone then, a text is
	// looked for in its own file only.
	Old, New map[string]string
	Renamed  map[string]string // the paths of Old that are others in New, as git tells
	// Open reads a blob; nil for what is no text.
	Open func(blob string) *File
}

// Find finds the text of a mark. It never guesses: of two places that are equally good it takes
// neither.
func (t *Trees) Find(m Mark) (State, Place) {
	path := m.Path
	blob, there := t.New[path]
	if !there && t.Renamed[path] != "" {
		path = t.Renamed[path]
		blob, there = t.New[path]
	}
	if there && blob == m.Blob {
		return m.at(Place{path, m.From, m.To})
	}
	if f := t.open(blob, there); f != nil {
		at := f.having(&m)
		if i := f.choose(&m, at); i >= 0 {
			return m.at(f.place(path, i, m.Lines))
		}
		if len(at) > 1 {
			return Ambiguous, Place{}
		}
	}
	found := t.others(&m, path)
	switch {
	case len(found) == 1:
		return Elsewhere, found[0]
	case len(found) > 1:
		return Ambiguous, Place{}
	case there:
		return Edited, Place{}
	}
	return Gone, Place{}
}

func (t *Trees) open(blob string, there bool) *File {
	if !there {
		return nil
	}
	return t.Open(blob)
}

// at is a place where the text of a mark was found in its file.
func (m *Mark) at(p Place) (State, Place) {
	switch {
	case p.Path != m.Path:
		return Elsewhere, p
	case p.From == m.From && p.To == m.To:
		return Same, p
	}
	return Moved, p
}

// others are the places in files that have come or changed, in none of which the text stood
// before: there it would be a twin.
func (t *Trees) others(m *Mark, path string) (found []Place) {
	if m.Length < shortest || len(t.Old) == 0 {
		return nil
	}
	for p, blob := range t.New {
		if p == m.Path || p == path || t.Old[p] == blob {
			continue
		}
		f := t.Open(blob)
		if f == nil {
			continue
		}
		at := f.having(m)
		if len(at) == 0 {
			continue
		}
		if old, was := t.Old[p]; was {
			if g := t.Open(old); g != nil && len(g.having(m)) >= len(at) {
				continue
			}
		}
		for _, i := range at {
			found = append(found, f.place(p, i, m.Lines))
		}
	}
	return found
}
