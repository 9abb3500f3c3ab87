package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/noun"
)

func BenchmarkTree(b *testing.B) {
	for b.Loop() {
		commandLine().Tree("task")
	}
}

func BenchmarkWholeTree(b *testing.B) {
	for b.Loop() {
		wholeTree()
	}
}

// The flags of other commands than the one that is wanted are not declared: that would take longer than
// a call. internal/proof/bench measures how long a list of tasks takes.
func TestOneCommandIsLessThanAll(t *testing.T) { // alone: allocations are counted
	commandLine().Tree("task") // looks capabilities up, once
	wholeTree()
	one := testing.AllocsPerRun(5, func() { commandLine().Tree("task") })
	if all := testing.AllocsPerRun(5, func() { wholeTree() }); one*2 > all {
		t.Errorf("the tree for one noun makes %.0f allocations, that of all commands %.0f", one, all)
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
		page, err := os.ReadFile(filepath.Join(dir, "yardmaster-"+strings.ReplaceAll(c.Words, " ", "-")+".1"))
		if err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") || strings.Contains(string(page), "Jan 1970") {
			t.Errorf("%s: %v\n%s", c.Words, err, page)
		}
		for _, want := range []string{".SH ENVIRONMENT", "YARDMASTER_TOKEN", ".SH EXIT STATUS", "there is no such object"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("the page of %s has no %s", c.Words, want)
			}
		}
	}
}

// A page shows the flags in its synopsis, and how objects are named.
func TestManualOfACommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, _, errs := yardmaster(t, "man", dir); code != 0 {
		t.Fatal(errs)
	}
	page, err := os.ReadFile(filepath.Join(dir, "yardmaster-task-redispatch.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`[\-\-guidance TEXT]`, ".SH NAMES", "@last", `.TH "YARDMASTER-TASK-REDISPATCH" "1"`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("there is no %s in\n%s", want, page)
		}
	}
}

// What the nouns call is found without a look at all capabilities.
func TestCapabilitiesAreFoundFast(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{}
	for _, n := range noun.All() {
		wanted[n.List] = true
		if n.Get != "" {
			wanted[n.Get] = true
		}
	}
	for _, c := range commands() {
		if c.Does != nil {
			wanted[c.Does.Capability()] = true
		}
	}
	for id := range wanted {
		group, _, _ := strings.Cut(id, ".")
		found := false
		for _, room := range append(capability.Rooms[group], group) {
			found = found || slices.ContainsFunc(app.OpsIn(room), func(o app.Op) bool { return o.ID == id })
		}
		if !found {
			t.Errorf("no domain of rooms has %s", id)
		}
	}
}
