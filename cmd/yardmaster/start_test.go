package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/app"
)

func BenchmarkTree(b *testing.B) {
	for b.Loop() {
		treeFor("task")
	}
}

func BenchmarkWholeTree(b *testing.B) {
	for b.Loop() {
		tree()
	}
}

func BenchmarkCapabilities(b *testing.B) {
	for b.Loop() {
		app.Ops()
	}
}

// There is a manual page for each command and noun.
func TestManualPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, _, errs := yardmaster(t, "man", dir)
	if code != 0 {
		t.Fatal(errs)
	}
	for _, c := range commands() {
		page, err := os.ReadFile(filepath.Join(dir, "yardmaster-"+strings.ReplaceAll(c.words, " ", "-")+".1"))
		if err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s: %v\n%s", c.words, err, page)
		}
	}
}

// What the nouns call is found without a look at all capabilities.
func TestCapabilitiesAreFoundFast(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{}
	for _, n := range nouns() {
		wanted[n.list] = true
		if n.get != "" {
			wanted[n.get] = true
		}
	}
	for _, c := range commands() {
		if c.does != nil {
			wanted[c.does.op] = true
		}
	}
	for id := range wanted {
		group, _, _ := strings.Cut(id, ".")
		found := false
		for _, room := range append(rooms[group], group) {
			found = found || slices.ContainsFunc(app.OpsIn(room), func(o app.Op) bool { return o.ID == id })
		}
		if !found {
			t.Errorf("no domain of rooms has %s", id)
		}
	}
}
