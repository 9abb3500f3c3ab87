package main

import (
	"debug/elf"
	"strings"
	"testing"

	"yardmaster/internal/proof/program"
)

// TestNoMethodIsFoundByName holds that the linker can leave methods out. A program that has the
// templates of the standard library run keeps all exported methods of all types, since templates
// find methods by name: this one was 26 MB larger. Package internal/stencil runs templates here.
func TestNoMethodIsFoundByName(t *testing.T) {
	t.Parallel()
	path, err := program.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	ours := false
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "text/template.(*state).evalField") {
			t.Errorf("the program has %s: `go build -ldflags=-dumpdep` tells what calls it", s.Name)
		}
		ours = ours || strings.HasPrefix(s.Name, "yardmaster/internal/stencil.")
	}
	if !ours {
		t.Error("the program has no symbols of its own templates: these are the symbols of something else")
	}
}
