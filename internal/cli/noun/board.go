package noun

import (
	"fmt"
	"strings"

	"yardmaster/internal/cli/object"
)

// plainBoard puts into words what each widget of a board shows.
func plainBoard(row map[string]any) {
	widgets, _ := row["widgets"].([]any)
	for _, each := range widgets {
		w := object.Map(each)
		w["shows"] = shown(w)
		for _, name := range []string{"id", "data", "text"} {
			delete(w, name)
		}
		if w["title"] == nil {
			w["title"] = w["source"]
		}
	}
}

// shown is what a widget shows: a number, the last one of a series, or what its rows are called.
func shown(w map[string]any) string {
	data := object.Map(w["data"])
	points, _ := data["points"].([]any)
	rows, _ := data["rows"].([]any)
	missing, _ := data["missing_scopes"].([]any)
	switch {
	case len(missing) > 0:
		return "the credential lacks " + object.Text(missing)
	case w["kind"] == "markdown":
		text, _, _ := strings.Cut(strings.TrimSpace(object.Text(w["text"])), "\n")
		return text
	case data["value"] != nil:
		return valueWords(object.Map(data["value"]))
	case len(points) > 0:
		return valueWords(object.Map(points[len(points)-1])) + " last"
	}
	labels := []string{}
	for _, r := range rows[:min(len(rows), 3)] {
		labels = append(labels, object.Text(object.Map(r)["label"]))
	}
	if data["next_cursor"] != nil || len(rows) > len(labels) {
		labels = append(labels, "…")
	}
	return strings.Join(labels, ", ")
}

// valueWords is a count, a rate or an amount.
func valueWords(v map[string]any) string {
	switch {
	case v["d"] != nil:
		return fmt.Sprintf("%s of %s", object.Text(v["n"]), object.Text(v["d"]))
	case v["n"] != nil:
		return object.Text(v["n"])
	case v["usd"] != nil:
		return object.Text(v["usd"]) + " USD"
	}
	return "unknown"
}
