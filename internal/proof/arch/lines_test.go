package arch

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is how many columns a line of Go may have. A tab counts as four.
const columns = 140

// TestLinesAreShort holds that no line is longer than a review on a laptop shows,
// apart from the texts in it: a message, the tag of a field and a line of a page stay
// whole, so that they can be searched for.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		for n, width := range widths(f.text) {
			if width > columns {
				t.Errorf("%s:%d has %d columns without its texts; the most are %d", f.path, n+1, width, columns)
			}
		}
	}
}

func TestWidths(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	for src, want := range map[string]int{
		"package p // " + long:                      213,
		"package p\n\nvar a = \"" + long + "\"":     len(`var a = ""`),
		"package p\n\nvar a = `\n" + long + "\n`":   len("var a = `"),
		"package p\n\nfunc a() {\n\treturn // é\n}": 4 + len("return // e"),
	} {
		most := 0
		for _, w := range widths([]byte(src)) {
			most = max(most, w)
		}
		if most != want {
			t.Errorf("the widest line of %q has %d columns, want %d", src, most, want)
		}
	}
}

// widths returns the number of columns of each line, without what stands between the
// quotes of texts of 50 bytes or more.
func widths(src []byte) []int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	kept := make([]byte, 0, len(src))
	at := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok != token.STRING || len(lit) < 50 {
			continue
		}
		off := file.Offset(pos)
		kept = append(kept, src[at:off+1]...)
		kept = append(kept, strings.Repeat("\n", strings.Count(lit, "\n"))...)
		at = off + len(lit) - 1
	}
	kept = append(kept, src[at:]...)
	var out []int
	for line := range strings.SplitSeq(string(kept), "\n") {
		out = append(out, utf8.RuneCountInString(line)+3*strings.Count(line, "\t"))
	}
	return out
}

// A file of the dashboard is no longer than one of Go.
func TestSourcesOfTheDashboardAreShort(t *testing.T) {
	t.Parallel()
	n := 0
	err := filepath.WalkDir(filepath.Join("..", "..", "web", "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".gen.ts") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n++; lines(text) > longest {
			t.Errorf("%s has %d lines; split it by concern", path, lines(text))
		}
		return nil
	})
	if err != nil || n < 50 {
		t.Errorf("%d sources were looked at: %v", n, err)
	}
}

// longest is how many lines a file written by hand may have.
const longest = 500

func TestFileLength(t *testing.T) {
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	for _, f := range files(t) {
		if n := lines(f.text); n > longest && !generated.Match(f.text) {
			t.Errorf("%s has %d lines; split it by concern", f.path, n)
		}
	}
}
