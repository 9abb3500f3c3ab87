package noun

import (
	"fmt"
	"io"
	"strings"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// writeProposal writes what a run would have a page say with all that a person decides by: what
// it would change, and what of people it leaves out. What is decided changes nothing any more.
func writeProposal(w io.Writer, row map[string]any) {
	s, state := screen.Out(), object.Text(row["state"])
	fmt.Fprintln(w, s.Paint(terminal.Strong, client.Inert(object.Text(row["id"])))+"  "+
		s.Paint(terminal.ToneOf(state), client.Inert(state))+"  "+client.Inert(object.Text(row["slug"])+"  "+object.Text(row["kind"])))
	for _, name := range []string{"why", "reason"} {
		if text := object.Text(row[name]); strings.TrimSpace(text) != "" {
			screen.Paragraph(w, text)
		}
	}
	hunks, _ := row["hunks"].([]any)
	for _, h := range hunks {
		fmt.Fprintln(w, "  line "+client.Inert(object.Text(object.Map(h)["old_line"])))
		for _, side := range []struct{ mark, name string }{{"-", "removed"}, {"+", "added"}} {
			lines, _ := object.Map(h)[side.name].([]any)
			for _, l := range lines {
				fmt.Fprintln(w, "  "+side.mark+client.Inert(object.Text(l)))
			}
		}
	}
	if out, _ := row["leaves_out"].([]any); len(out) > 0 {
		fmt.Fprintln(w, "  "+s.Paint(terminal.Ask, "leaves out what people wrote:"))
		for _, text := range out {
			screen.Paragraph(w, object.Text(text))
		}
	}
}
