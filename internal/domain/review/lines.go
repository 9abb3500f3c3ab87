package review

import (
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/lazy"
)

// blankRun are blanks, which collapse to one in an anchor.
var blankRun = lazy.New(`\s+`)

// around is how many lines with text an anchor has on each side of its line, and shownAround
// how many lines a verifier is shown on each side of one.
const (
	around      = 2
	shownAround = 10
	maxLine     = 200 // characters of such a line
)

// anchorOf is the text of a line, counted from 1, and of the nearest lines with text on
// both sides, without what a formatter may change. It has no number of a line, so it stays
// the same when the lines move. "" if there is no such line.
func anchorOf(lines []string, line int) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	var before, after []string
	for i := line - 2; i >= 0 && len(before) < around; i-- {
		if t := collapse(lines[i]); t != "" {
			before = append([]string{t}, before...)
		}
	}
	for i := line; i < len(lines) && len(after) < around; i++ {
		if t := collapse(lines[i]); t != "" {
			after = append(after, t)
		}
	}
	return strings.Join(append(append(before, collapse(lines[line-1])), after...), "\n")
}

// collapse takes from a line what a formatter may change.
func collapse(s string) string { return strings.TrimSpace(blankRun.ReplaceAllString(s, " ")) }

// opensSymbol is how git recognises the line that names a section of a file.
var opensSymbol = lazy.New(`^[A-Za-z_$]`)

// maxSymbol limits the name of a section, in bytes.
const maxSymbol = 200

// symbolOf is the line, at or above a line, that begins without indentation: the function
// or type around it, in most languages. "" if there is none.
func symbolOf(lines []string, line int) string {
	for i := min(line, len(lines)) - 1; i >= 0; i-- {
		if opensSymbol.MatchString(lines[i]) {
			s := collapse(lines[i])
			return strings.ToValidUTF8(s[:min(len(s), maxSymbol)], "")
		}
	}
	return ""
}

// splitLines are the lines of a file.
func splitLines(text []byte) []string {
	s := strings.ToValidUTF8(string(text), "\uFFFD")
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// moveRange maps a range of lines through the changes of its file. touched tells that a
// line of the range was changed or deleted; then the answer is the place where it was.
func moveRange(hunks []codehost.Hunk, start, end int) (newStart, newEnd int, touched bool) {
	from, _, a := moveLine(hunks, start)
	_, to, b := moveLine(hunks, end)
	if to < from {
		to = from
	}
	for _, h := range hunks {
		old := h.OldStart
		if h.OldLines == 0 {
			old++ // git counts the line before
		}
		for _, l := range h.Lines {
			if l == "" {
				continue
			}
			switch l[0] {
			case '-':
				if start <= old && old <= end {
					touched = true
				}
				old++
			case '+':
				// Lines that are put between two of the range change it, too.
				if start < old && old <= end {
					touched = true
				}
			case ' ':
				old++
			}
		}
	}
	return max(from, 1), max(to, 1), touched || a || b
}

// moveLine maps one line: after is its new number, or that of the line that follows its
// place, and before that of the line ahead, if it was deleted.
func moveLine(hunks []codehost.Hunk, line int) (after, before int, deleted bool) {
	shift := 0
	for _, h := range hunks {
		begin := h.OldStart
		if h.OldLines == 0 {
			begin++ // git counts the line before
		}
		if line < begin {
			break
		}
		if line >= begin+h.OldLines {
			shift += h.NewLines - h.OldLines
			continue
		}
		old, now := h.OldStart, h.NewStart
		if h.NewLines == 0 {
			now++
		}
		for _, l := range h.Lines {
			if l == "" {
				continue
			}
			switch l[0] {
			case ' ':
				if old == line {
					return now, now, false
				}
				old, now = old+1, now+1
			case '-':
				if old == line {
					return now, now - 1, true
				}
				old++
			case '+':
				now++
			}
		}
	}
	return line + shift, line + shift, false
}

// findAnchor is the line that has an anchor, the one nearest to a line if there are several; 0
// if none has it.
func findAnchor(lines []string, anchor string, near int) (at int) {
	if anchor == "" {
		return 0
	}
	for i, l := range lines {
		nearer := at == 0 || abs(i+1-near) < abs(at-near)
		if nearer && strings.Contains(anchor, collapse(l)) && anchorOf(lines, i+1) == anchor {
			at = i + 1
		}
	}
	return at
}

func abs(n int) int { return max(n, -n) }

// touches tells whether a change of a file, which has lines afterwards, is in the section
// around a line.
func touches(lines []string, hunks []codehost.Hunk, line int) bool {
	section := symbolOf(lines, line)
	for _, h := range hunks {
		at := h.NewStart
		if h.NewLines == 0 {
			at++ // git counts the line before
		}
		for _, l := range h.Lines {
			if l == "" || l[0] == '\\' {
				continue
			}
			if l[0] != ' ' && symbolOf(lines, at) == section {
				return true
			}
			if l[0] != '-' {
				at++
			}
		}
	}
	return false
}

// excerpt is the text around a line with the numbers of its lines; "" if there is no such line.
func excerpt(lines []string, line int) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	var b strings.Builder
	for i := max(1, line-shownAround); i <= min(len(lines), line+shownAround); i++ {
		text := []rune(strings.TrimRight(strings.ReplaceAll(lines[i-1], "\x00", ""), " \t\r"))
		fmt.Fprintf(&b, "%d  %s\n", i, string(text[:min(len(text), maxLine)]))
	}
	return b.String()
}
