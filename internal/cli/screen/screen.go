// Package screen writes texts and tables to standard output, as wide as that is, and long ones page by page.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// Out is standard output as a screen.
func Out() terminal.Screen {
	if beforePager != nil {
		return *beforePager
	}
	return terminal.Of(os.Stdout, os.Getenv)
}

// Wrapped writes the lines of a text after a margin, broken where the screen ends.
func Wrapped(w io.Writer, s terminal.Screen, margin, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		for part := range client.Broken(line, s.Width-len(margin)) {
			fmt.Fprintln(w, margin+part)
		}
	}
}

// Say prints what untrusted texts are put into, each as one line.
func Say(format string, a ...any) {
	for i, v := range a {
		if text, ok := v.(string); ok {
			a[i] = client.Inert(text)
		}
	}
	fmt.Printf(format, a...)
}

// Afterword prints what comes next, or how it is undone: where the output is for a program,
// on standard error.
func Afterword(text string) {
	if Out().Width > 0 {
		fmt.Println(text)
		return
	}
	fmt.Fprintln(os.Stderr, text)
}

// Table prints rows under a header, cut to the width of the terminal and without
// control characters, since strangers may have written the cells. For no rows it
// prints first, the command that makes the first row.
func Table(header string, rows [][]string, first string) {
	Lines(header, rows)
	if len(rows) == 0 {
		fmt.Fprintf(os.Stderr, "There are none yet: %s\n", first)
	}
}

// Lines prints the rows of a table under its header.
func Lines(header string, rows [][]string) {
	var columns []terminal.Column
	heads := strings.Split(header, "\t")
	for i, h := range heads {
		columns = append(columns, terminal.Column{Head: h, Flex: i == len(heads)-1})
	}
	cells := make([][]terminal.Cell, len(rows))
	for i, r := range rows {
		for _, text := range r {
			cells[i] = append(cells[i], terminal.Cell{Text: text, Tone: terminal.ToneOf(text)})
		}
	}
	_ = Out().Table(os.Stdout, columns, cells)
}

// Paragraph writes a text of lines as they are indented, broken where the screen ends.
func Paragraph(w io.Writer, text string) {
	all := strings.Split(text, "\n")
	empty := func(line string) bool { return client.Inert(line) == "" }
	for len(all) > 0 && empty(all[0]) {
		all = all[1:]
	}
	for len(all) > 0 && empty(all[len(all)-1]) {
		all = all[:len(all)-1]
	}
	width := Out().Width - 2
	for _, line := range all {
		rest := strings.TrimLeft(line, " \t")
		indent := strings.ReplaceAll(line[:len(line)-len(rest)], "\t", "    ")
		if width > 0 && len(indent) > width/2 || empty(rest) {
			indent = ""
		}
		for part := range client.Broken(client.Inert(rest), width-len(indent)) {
			fmt.Fprintln(w, "  "+indent+part)
		}
	}
}
