// Package table writes objects as the rows of a table: which members are its columns, and how each is written.
package table

import (
	"io"
	"slices"
	"time"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/terminal"
)

// Column is a column of a list. It is a type without a name of its own, so that every package can write
// rows of them.
type Column = struct {
	Head string
	At   string // the dotted name of the member; of several with | between, the first that is there
	As   Form
}

// Form is how a member is written for people.
type Form int

const (
	Text     Form = iota // as it is
	Title                // text that gives way where there is no room
	ID                   // an id, by as much of its end as tells it from others
	State                // a state, coloured where there are colours
	Age                  // how long ago
	USD                  // dollars
	Cost                 // dollars in a column that stays where others have no room
	SHA                  // the beginning of a commit
	Count                // a number; none for 0
	Number               // a number, also 0
	Holds                // why a task waits
	Pull                 // the repository and number of a pull request
	Span                 // a number of seconds
	Size                 // how many lines change
	Reviewed             // what became of the review
	Wait                 // what a pull request waits for
	Until                // what ends a wait, without the call that does
	Object               // what an audit row is about, by its name if the row has one

	Extra      // text that is left out first where there is no room
	ExtraTitle // the same, which gives way before that
	ExtraCount // a number that is left out first; none for 0
)

// Of are the columns and cells of objects.
func Of(of []Column, all []any) (columns []terminal.Column, cells [][]terminal.Cell) {
	now := time.Now()
	for _, c := range of {
		columns = append(columns, terminal.Column{Head: c.Head,
			Flex:  c.As == Title || c.As == Until || c.As == Object || c.As == ExtraTitle,
			Right: slices.Contains([]Form{USD, Cost, Count, Number, Span, Size, ExtraCount}, c.As),
			Last:  c.As == Wait || c.As == Holds || c.As == Cost,
			Extra: c.As == Extra || c.As == ExtraTitle || c.As == ExtraCount})
	}
	for _, e := range all {
		row, ok := e.(map[string]any)
		if !ok {
			continue
		}
		var line []terminal.Cell
		for _, c := range of {
			line = append(line, cellOf(c, row, now))
		}
		cells = append(cells, line)
	}
	return columns, cells
}

// Write writes objects as a table.
func Write(w io.Writer, of []Column, all []any) error {
	columns, cells := Of(of, all)
	return screen.Out().Table(w, columns, cells)
}

// Unique puts short ids into the column of ids, as long as it takes to tell them apart.
func Unique(cells [][]terminal.Cell, columns []Column, ids []string) {
	at := slices.IndexFunc(columns, func(c Column) bool { return c.As == ID })
	if at < 0 || screen.Out().Width == 0 {
		return
	}
	n := object.Few
	for ; n < 36; n++ {
		whole := map[string]string{} // by their parts
		same := false
		for _, id := range ids {
			of, known := whole[object.Part(id, n)]
			same = same || known && of != id
			whole[object.Part(id, n)] = id
		}
		if !same {
			break
		}
	}
	for i, id := range ids {
		if object.WholeID.MatchString(id) && i < len(cells) {
			cells[i][at].Text = object.Part(id, n)
		}
	}
}
