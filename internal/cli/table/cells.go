package table

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/client"
	"yardmaster/internal/money"
	"yardmaster/internal/terminal"
)

// ReviewWords says what the state of a review is that does not go on now and has come to no
// verdict; "" of another one.
func ReviewWords(state string) string {
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
func cellOf(c Column, row map[string]any, now time.Time) terminal.Cell {
	var v any
	for at := range strings.SplitSeq(c.At, "|") {
		if v, _ = object.Lookup(row, at); v != nil {
			break
		}
	}
	if c.As == Wait {
		return waitOf(row)
	}
	if c.As == Until {
		return terminal.Cell{Text: object.Clear(row["clear"]).Plain(object.Text(v))}
	}
	if c.As == Object {
		return terminal.Cell{Text: objectOf(row, object.Text(v))}
	}
	if c.As == Pull {
		return terminal.Cell{Text: object.Text(row["repo"]) + "#" + object.Text(row["number"])}
	}
	return Cell(v, c.As, now)
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

// Cell is a value of JSON in a form. now is what ages are counted from.
func Cell(v any, as Form, now time.Time) terminal.Cell {
	text := object.Text(v)
	switch as {
	case ID:
		if screen.Out().Width > 0 {
			text = object.Short(text)
		}
	case State:
		return terminal.Cell{Text: strings.ReplaceAll(text, "_", " "), Tone: terminal.ToneOf(text)}
	case Reviewed:
		if say := ReviewWords(text); say != "" {
			return terminal.Cell{Text: say, Tone: terminal.Faint}
		}
		return Cell(v, State, now)
	case Age:
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			text = terminal.Age(now, at)
		}
		return terminal.Cell{Text: text, Tone: terminal.Faint}
	case USD: // a price or a limit, as it is
		if text != "" {
			text = "$" + text
		}
	case Cost:
		if text != "" {
			text = money.Shown(text)
		}
	case Holds:
		holds, _ := v.([]any)
		var reasons []string
		for _, h := range holds {
			hold, _ := h.(map[string]any)
			reasons = append(reasons, strings.TrimPrefix(client.Reason(object.Text(hold["reason"])), "for "))
		}
		return terminal.Cell{Text: strings.Join(reasons, ", "), Tone: terminal.Ask}
	case Size:
		if size, ok := v.(map[string]any); ok {
			text = "+" + object.Text(size["additions"]) + " −" + object.Text(size["deletions"])
		}
	case Span:
		text = object.Span(v)
	case SHA:
		text = fmt.Sprintf("%.10s", text)
	case ExtraCount:
		if text == "0" {
			text = ""
		}
	case Count:
		if all, ok := v.([]any); ok {
			text = strconv.Itoa(len(all))
		}
	}
	return terminal.Cell{Text: text}
}
