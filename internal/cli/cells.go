package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// column is a column of a list. It is a type without a name of its own, so that every package can write
// rows of them.
type column = struct {
	head string
	at   string // the dotted name of the member; of several with | between, the first that is there
	as   form
}

// form is how a member is written for people.
type form int

const (
	asText  form = iota
	asTitle      // text that gives way where there is no room
	asID
	asState
	asAge
	asUSD
	asCost // dollars in a column that stays where others have no room
	asSHA
	asCount
	asNumber
	asHolds // why a task waits
	asPull  // the repository and number of a pull request
	asSpan  // a number of seconds
	asSize  // how many lines change
	asReviewed
	asWait   // what a pull request waits for
	asUntil  // what ends a wait, without the call that does
	asObject // what an audit row is about, by its name if the row has one

	// What is left out first where there is no room.
	asExtra      // text
	asExtraTitle // text that gives way
	asExtraCount // a number; none for 0
)

// reviewWords says what the state of a review is that does not go on now and has come to no
// verdict; "" of another one.
func reviewWords(state string) string {
	switch state {
	case "off":
		return "not reviewed"
	case "blind":
		return "no model to review it"
	case "held":
		return "review held"
	case "failed":
		return "review failed"
	case "cancelled":
		return "review cancelled"
	}
	return ""
}

// cellOf is a member of a row in its form.
func cellOf(c column, row map[string]any, now time.Time) terminal.Cell {
	var v any
	for at := range strings.SplitSeq(c.at, "|") {
		if v, _ = object.Lookup(row, at); v != nil {
			break
		}
	}
	if c.as == asWait {
		return waitOf(row)
	}
	if c.as == asUntil {
		return terminal.Cell{Text: object.Clear(row["clear"]).Plain(object.Text(v))}
	}
	if c.as == asObject {
		return terminal.Cell{Text: objectOf(row, object.Text(v))}
	}
	if c.as == asPull {
		return terminal.Cell{Text: object.Text(row["repo"]) + "#" + object.Text(row["number"])}
	}
	return cell(v, c.as, now)
}

// objectOf is what an audit row is about: its name and its short id, if what changed has a name. A piped list has
// the id alone.
func objectOf(row map[string]any, id string) string {
	if screen.Out().Width == 0 || !object.WholeID.MatchString(id) {
		return id
	}
	data := object.Map(row["data"])
	for _, name := range []string{"title", "name", "label", "email"} {
		if text := object.Text(data[name]); text != "" {
			return text + " (" + object.Short(id) + ")"
		}
	}
	if repo, number := object.Text(data["repo"]), object.Text(data["number"]); repo != "" && number != "" {
		return repo + "#" + number + " (" + object.Short(id) + ")"
	}
	return id
}

// waitOf is what an open pull request waits for, the most urgent first.
func waitOf(row map[string]any) terminal.Cell {
	asked := object.Map(row["pending_action"])
	switch need := object.Map(row["needs_person"]); {
	case row["state"] != "open" && row["state"] != "opening":
		return terminal.Cell{}
	case asked["state"] == "pending":
		return terminal.Cell{Text: "your answer", Tone: terminal.Ask}
	case need["why"] != nil:
		return terminal.Cell{Text: strings.ReplaceAll(object.Text(need["why"]), "_", " "), Tone: terminal.Ask}
	case object.Map(row["queue"])["state"] != nil:
		return terminal.Cell{Text: "merge queue", Tone: terminal.Wait}
	case object.Map(row["babysit"])["task_id"] != nil:
		return terminal.Cell{Text: "repair", Tone: terminal.Run}
	}
	return terminal.Cell{}
}

func cell(v any, as form, now time.Time) terminal.Cell {
	text := object.Text(v)
	switch as {
	case asID:
		if screen.Out().Width > 0 {
			text = object.Short(text)
		}
	case asState:
		return terminal.Cell{Text: strings.ReplaceAll(text, "_", " "), Tone: terminal.ToneOf(text)}
	case asReviewed:
		if say := reviewWords(text); say != "" {
			return terminal.Cell{Text: say, Tone: terminal.Faint}
		}
		return cell(v, asState, now)
	case asAge:
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			text = terminal.Age(now, at)
		}
		return terminal.Cell{Text: text, Tone: terminal.Faint}
	case asUSD, asCost:
		if text != "" {
			text = "$" + text
		}
	case asHolds:
		holds, _ := v.([]any)
		var reasons []string
		for _, h := range holds {
			hold, _ := h.(map[string]any)
			reasons = append(reasons, strings.ReplaceAll(object.Text(hold["reason"]), "_", " "))
		}
		return terminal.Cell{Text: strings.Join(reasons, ", "), Tone: terminal.Ask}
	case asSize:
		if size, ok := v.(map[string]any); ok {
			text = "+" + object.Text(size["additions"]) + " −" + object.Text(size["deletions"])
		}
	case asSpan:
		text = object.Span(v)
	case asSHA:
		text = fmt.Sprintf("%.10s", text)
	case asExtraCount:
		if text == "0" {
			text = ""
		}
	case asCount:
		if all, ok := v.([]any); ok {
			text = strconv.Itoa(len(all))
		}
	}
	return terminal.Cell{Text: text}
}

// people writes rows as a table.
func (n *noun) people(w io.Writer, b []byte) error {
	v, err := object.Decode(b)
	if err != nil {
		return err
	}
	all, _ := v.([]any)
	columns, cells := tabled(n.columns, all)
	var ids []string
	for _, e := range all {
		if row, ok := e.(map[string]any); ok {
			ids = append(ids, n.id(row))
		}
	}
	unique(cells, n.columns, ids)
	n.heard(ids)
	if n.block != nil && screen.Out().Width > 0 {
		for i, e := range all {
			if i > 0 {
				fmt.Fprintln(w)
			}
			n.block(w, object.Map(e))
		}
		return nil
	}
	if n.below == nil || screen.Out().Width == 0 {
		return screen.Out().Table(w, columns, cells)
	}
	var table strings.Builder
	if err := screen.Out().Table(&table, columns, cells); err != nil {
		return err
	}
	at := -1 // of the row; the first line has the heads
	for line := range strings.Lines(table.String()) {
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		if at++; at > 0 {
			if text := n.below(object.Map(all[at-1])); text != "" {
				if _, err := fmt.Fprintln(w, "  "+client.Inert(text)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// columnsOf writes objects as a table.
func columnsOf(w io.Writer, of []column, all []any) error {
	columns, cells := tabled(of, all)
	return screen.Out().Table(w, columns, cells)
}

// tabled are the columns and cells of objects.
func tabled(of []column, all []any) (columns []terminal.Column, cells [][]terminal.Cell) {
	now := time.Now()
	for _, c := range of {
		columns = append(columns, terminal.Column{Head: c.head,
			Flex:  c.as == asTitle || c.as == asUntil || c.as == asObject || c.as == asExtraTitle,
			Right: slices.Contains([]form{asUSD, asCost, asCount, asNumber, asSpan, asSize, asExtraCount}, c.as),
			Last:  c.as == asWait || c.as == asHolds || c.as == asCost,
			Extra: c.as == asExtra || c.as == asExtraTitle || c.as == asExtraCount})
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
