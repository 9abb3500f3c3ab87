package terminal

import (
	"io"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"yardmaster/internal/client/inert"
)

// Column is a column of a table.
type Column struct {
	Head  string
	Right bool // numbers
	Flex  bool // is cut before the others, where the table is too wide
	Last  bool // is left out after the others, where the table is too wide
	Extra bool // is left out before the others are cut, where the table is too wide
}

// Cell is text in a tone.
type Cell struct {
	Text string
	Tone Tone
}

const (
	gap   = 2 // columns between two cells
	least = 8 // columns that a cell keeps when it is cut

	// readable are the columns that a flexible cell keeps while there are others to leave out, roomy those that
	// it keeps while there are extra ones.
	readable, roomy = 13, 30
)

// Table writes rows under a header, a line for each. On a screen with a width no line is
// wider: extra columns are left out first, a flexible one once it and the others are cut to
// what is roomy; then flexible columns give way, the widest before the others; then columns after
// the second are left out from the right, so that a title can still be read. Cells are made
// inert. A row may be shorter than the header. A column of which all cells are empty is
// left out.
func (s Screen) Table(w io.Writer, columns []Column, rows [][]Cell) error {
	lines := inertLines(columns, rows)
	widths := s.fit(columns, lines)
	var b strings.Builder
	for _, line := range lines {
		b.Reset()
		pad := 0
		for i, c := range line {
			if widths[i] == 0 {
				continue
			}
			text := Cut(c.Text, widths[i])
			room := widths[i] - Width(text)
			if columns[i].Right {
				pad, room = pad+room, 0
			}
			if text != "" {
				b.WriteString(strings.Repeat(" ", pad))
				b.WriteString(s.Paint(c.Tone, text))
				pad = 0
			}
			pad += room + gap
		}
		b.WriteByte('\n')
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// Fits tells whether a table has room on the screen with nothing cut or left out.
func (s Screen) Fits(columns []Column, rows [][]Cell) bool {
	if s.Width == 0 {
		return true
	}
	total := -gap
	for _, w := range natural(columns, inertLines(columns, rows)) {
		if w > 0 {
			total += w + gap
		}
	}
	return total <= s.Width
}

// inertLines are the header and the rows of a table, as long as the header and made inert.
func inertLines(columns []Column, rows [][]Cell) [][]Cell {
	lines := make([][]Cell, 0, len(rows)+1)
	head := make([]Cell, len(columns))
	for i, c := range columns {
		head[i] = Cell{inert.Line(c.Head), Faint}
	}
	lines = append(lines, head)
	for _, r := range rows {
		line := make([]Cell, len(columns))
		for i := range min(len(r), len(line)) {
			line[i] = Cell{inert.Line(r[i].Text), r[i].Tone}
		}
		lines = append(lines, line)
	}
	return lines
}

// natural is the width of each column whose cells are not cut; 0 for one in which nothing is.
func natural(columns []Column, lines [][]Cell) []int {
	widths := make([]int, len(columns))
	for i := range columns {
		if len(lines) > 1 && !slices.ContainsFunc(lines[1:], func(line []Cell) bool { return line[i].Text != "" }) {
			continue
		}
		for _, line := range lines {
			widths[i] = max(widths[i], Width(line[i].Text))
		}
	}
	return widths
}

// fit is the width of each column. One that has no room at all is 0.
func (s Screen) fit(columns []Column, lines [][]Cell) []int {
	widths := natural(columns, lines)
	if s.Width == 0 {
		return widths
	}
	total := func() (n int) {
		for _, w := range widths {
			if w > 0 {
				n += w + gap
			}
		}
		return n - gap
	}
	full := slices.Clone(widths)
	shrink := func(flexible bool, floor int) {
		for total() > s.Width {
			widest := -1
			for i, c := range columns {
				if c.Flex == flexible && widths[i] > floor && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				return
			}
			widths[widest]--
		}
	}
	extra := func(flexible bool) {
		for i := len(widths) - 1; i > 1 && total() > s.Width; i-- {
			if columns[i].Extra && columns[i].Flex == flexible {
				widths[i] = 0
			}
		}
	}
	if extra(false); slices.ContainsFunc(columns, func(c Column) bool { return c.Extra && c.Flex }) {
		shrink(true, roomy)
		extra(true)
	}
	shrink(true, readable)
	if slices.ContainsFunc(columns, func(c Column) bool { return c.Flex }) {
		for _, last := range []bool{false, true} {
			for i := len(widths) - 1; i > 1 && total() > s.Width; i-- {
				if !columns[i].Flex && columns[i].Last == last {
					widths[i] = 0 // before a title is cut to nothing
				}
			}
		}
	}
	shrink(true, least)
	shrink(false, least)
	for i := len(widths) - 1; i > 0 && total() > s.Width; i-- {
		widths[i] = 0 // the first columns tell the rows apart
	}
	for i, c := range columns { // what was left out may have left room
		if c.Flex && widths[i] > 0 {
			widths[i] += max(0, min(full[i]-widths[i], s.Width-total()))
		}
	}
	return widths
}

// Width is the number of columns that inert text takes on a terminal.
func Width(text string) int { return displaywidth.String(text) }

// Cut is text of at most most columns; what is cut ends with an ellipsis.
func Cut(text string, most int) string {
	if Width(text) <= most {
		return text
	}
	if most < 1 {
		return ""
	}
	var b strings.Builder
	used := 0
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		if used+g.Width() > most-1 {
			break
		}
		used += g.Width()
		b.WriteString(g.Value())
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// Facts writes labels and values below each other; values of several lines, and the rest of a
// line that is longer than the screen is wide, are indented. Both are made inert.
func (s Screen) Facts(w io.Writer, facts []Fact) error {
	widest := 0
	for i := range facts {
		facts[i].Label = inert.Line(facts[i].Label)
		widest = max(widest, Width(facts[i].Label))
	}
	var b strings.Builder
	for _, f := range facts {
		var lines []string
		for line := range strings.SplitSeq(inert.Lines(f.Value.Text), "\n") {
			lines = append(lines, wrapped(line, s.Width-2-widest-gap)...)
		}
		for i, line := range lines {
			label := f.Label
			if i > 0 {
				label = ""
			}
			b.WriteString("  " + s.Paint(Faint, label) + strings.Repeat(" ", widest-Width(label)+gap) + s.Paint(f.Value.Tone, line))
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrapped breaks a line between words into parts of at most most columns; a longer word remains
// whole. Under 20 columns nothing is broken.
func wrapped(line string, most int) (parts []string) {
	if most < 20 {
		return []string{line}
	}
	part := ""
	for _, word := range strings.SplitAfter(line, " ") {
		if part != "" && Width(part)+Width(strings.TrimRight(word, " ")) > most {
			parts = append(parts, strings.TrimRight(part, " "))
			part = ""
		}
		part += word
	}
	return append(parts, part)
}

// Fact is one thing that is said of an object.
type Fact struct {
	Label string
	Value Cell
}
