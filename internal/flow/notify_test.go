package flow

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page about notifications says of every event that is told who hears of it, and of no
// other.
func TestNotifyIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Who hears what")
	table, _, _ = strings.Cut(table, "\n## ")
	var said, told []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, name := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(cells[1], -1) {
				said = append(said, name[1])
			}
		}
	}
	for _, r := range everyRule() {
		for _, k := range r.kinds {
			told = append(told, k.Name())
		}
	}
	slices.Sort(said)
	slices.Sort(told)
	if said, told = slices.Compact(said), slices.Compact(told); !slices.Equal(said, told) {
		t.Errorf("docs/notifications.md has %q; told of is %q", said, told)
	}
}
