package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissedIsReadable(t *testing.T) {
	t.Parallel()
	list, err := known(missedText)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range sections {
		names[s.name] = true
	}
	for key := range list {
		if section, _, _ := strings.Cut(key, "\t"); !names[section] {
			t.Errorf("missed.tsv has a section %s, which there is not", section)
		}
	}
	if _, err := known("start\twhat\n"); err == nil {
		t.Error("a target without a word on what is to be done is taken")
	}
}

func TestCheckRefusesWhatIsMissedEachTime(t *testing.T) { // alone: it changes the sections
	was, text := sections, missedText
	t.Cleanup(func() { sections, missedText = was, text })
	missedText = "slow\told\tsoon\n"
	for _, c := range []struct {
		name  string
		row   string
		met   []bool // in each run
		fails bool
	}{
		{"met", "new", []bool{true}, false}, {"missed once", "new", []bool{false, true}, false},
		{"missed each time", "new", []bool{false, false, false}, true}, {"known", "old", []bool{false, false, false}, false},
	} {
		run := 0
		measure := func(_ context.Context, b *bench) error {
			// A server that was set up in a folder is not set up there again.
			if err := os.Mkdir(filepath.Join(b.dir, "server"), 0o700); err != nil {
				return err
			}
			b.add(row{what: c.row, target: "less", met: c.met[min(run, len(c.met)-1)]})
			run++
			return nil
		}
		sections = []section{{"slow", "", measure}}
		b := &bench{dir: t.TempDir()}
		if err := measure(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		b.rows[0].section = "slow"
		if err := b.check(t.Context()); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestHead holds that ten functions of a profile are printed, and no heading.
func TestHead(t *testing.T) {
	t.Parallel()
	report := "# Samples: 99\n#\n\n"
	for i := range 12 {
		report += fmt.Sprintf("    %d.00%%  [.] runtime.f%d\n", 30-i, i)
	}
	got := head(report)
	if strings.Count(got, "\n") != longest || !strings.HasPrefix(got, "  30.00%  [.] runtime.f0\n") || strings.Contains(got, "#") {
		t.Errorf("%s", got)
	}
}
