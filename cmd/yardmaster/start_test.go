package main

import (
	"os"
	"path/filepath"
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
