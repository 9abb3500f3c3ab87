package webhook

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
)

// What is for one webhook alone is followed to its end: on its way, arrived, given up, or not
// sent at all. What others may hear is not.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		var told []string
		Told.On(y.nodes[0].DB, func(_ *db.Tx, o Outcome) error {
			told = append(told, o.State+" "+string(o.Data))
			return nil
		})
		heard := func(what string, want ...string) {
			y.t.Helper()
			if !slices.Equal(told, want) {
				y.t.Errorf("%s: told %q, want %q", what, told, want)
			}
			told = nil
		}
		hand := func(source, name string) {
			y.send(News{Type: IssueHandoff, Source: source, Data: []byte(`{"handoff_id":"` + source + `"}`), Hook: name})
		}
		made := y.hook("coder")
		y.send(News{Type: PullMerged, Source: "merge", Data: []byte(`{}`)})
		hand("one", "coder")
		hand("one", "coder")
		y.pass()
		heard("taken", `pending {"handoff_id":"one"}`, `ok {"handoff_id":"one"}`)
		hand("two", "nobody")
		heard("for no webhook", `exhausted {"handoff_id":"two"}`)

		y.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
		hand("three", "coder")
		y.pass()
		heard("on its way", `pending {"handoff_id":"three"}`)
		y.wait(24 * time.Hour)
		hand("four", "coder")
		for range len(ladder) {
			y.pass()
			y.wait(25 * time.Hour)
		}
		y.pass()
		if len(told) < 3 || !slices.Contains(told, `exhausted {"handoff_id":"three"}`) ||
			!slices.Contains(told, `skipped {"handoff_id":"four"}`) && !slices.Contains(told, `exhausted {"handoff_id":"four"}`) {
			y.t.Errorf("given up: told %q", told)
		}
		told = nil
		hand("five", "coder")
		heard("to an unhealthy webhook", `skipped {"handoff_id":"five"}`)

		if _, err := y.nodes[0].revive(y.as("acme"), idIn{ID: made.ID}); err != nil {
			y.t.Fatal(err)
		}
		hand("six", "coder")
		if _, err := y.nodes[0].delete(y.as("acme"), idIn{ID: made.ID}); err != nil {
			y.t.Fatal(err)
		}
		heard("deleted", `pending {"handoff_id":"six"}`, `skipped {"handoff_id":"six"}`)
	})
}
