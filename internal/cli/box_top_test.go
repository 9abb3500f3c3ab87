package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/tree"
)

// A box that is being drained, or is, is there with what it still does; slots are those that take work now.
func TestBoxTopShowsBoxesThatAreDrained(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/runners": `{"data": [
			{"id": "` + someID + `", "name": "old", "state": "draining", "slots": 8, "presence": {"status": "online", "active": 1}},
			{"id": "` + otherID + `", "name": "away", "state": "enrolled", "slots": 4, "presence": {"status": "offline", "active": 0}},
			{"id": "32345678-1234-4234-8234-123456789abc", "name": "new", "state": "enrolled", "slots": 2,
				"presence": {"status": "online", "active": 0, "telemetry": {"disk_free": 45260038144}}}], "next_cursor": null}`,
		"GET /v1/tasks": `{"data": [{"id": "` + otherID + `", "status": "running", "repo": "acme/web", "title": "Mend it", "box_id": "` + someID + `"}],
			"next_cursor": null}`,
	})
	p := f.person(t)
	p.holds("box top --once", 0, "boxes 3   tasks on them 1 of 2 slots", "STATE", "draining", "Mend it", "42.2 GiB", "!There is no box")
	if !f.was("GET /v1/runners?", "enrolled", "draining", "drained") {
		t.Errorf("asked is %q", f.calls)
	}
	_, out, _ := yardmasterAt(t, f.URL, "box", "top", "--json", "*")
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 3 {
		t.Fatal(err, out)
	}
	if got, said := slices.Sorted(maps.Keys(rows[0])), topCommand().Members; !slices.Equal(got, said) {
		t.Errorf("a row has %q, and is said to have %q", got, said)
	}
	p.holds("task list --since 0d", exit.CodeMisused, `not "0d"`)
}

// The words that commands begin with are said, each.
func TestWordsHaveHeads(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		first, rest, _ := strings.Cut(c.Words, " ")
		own := slices.ContainsFunc(commands(), func(c tree.Command) bool { return c.Words == first })
		if rest != "" && !own && heads[first] == "" {
			t.Errorf("help says nothing of %q", first)
		}
	}
}
