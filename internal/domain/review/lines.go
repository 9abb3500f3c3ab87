package review

import (
	"regexp"
	"strings"

	"yardmaster/internal/codehost"
)

// blankRun are blanks, which collapse to one in an anchor.
var blankRun = regexp.MustCompile(`\s+`)

// around is how many lines with text an anchor has on each side of its line.
const around = 2

// anchorOf is the text of a line, counted from 1, and of the nearest lines with text on
// both sides, without what a formatter may change. It has no number of a line, so it stays
// the same when the lines move. "" if there is no such line.
func anchorOf(lines []string, line int) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	plain := func(s string) string { return strings.TrimSpace(blankRun.ReplaceAllString(s, " ")) }
	var before, after []string
	for i := line - 2; i >= 0 && len(before) < around; i-- {
		if t := plain(lines[i]); t != "" {
			before = append([]string{t}, before...)
		}
	}
	for i := line; i < len(lines) && len(after) < around; i++ {
		if t := plain(lines[i]); t != "" {
			after = append(after, t)
		}
	}
	return strings.Join(append(append(before, plain(lines[line-1])), after...), "\n")
}

// opensSymbol is how git recognises the line that names a section of a file.
var opensSymbol = regexp.MustCompile(`^[A-Za-z_$]`)

// maxSymbol limits the name of a section, in bytes.
const maxSymbol = 200

// symbolOf is the line, at or above a line, that begins without indentation: the function
// or type around it, in most languages. "" if there is none.
func symbolOf(lines []string, line int) string {
	for i := min(line, len(lines)) - 1; i >= 0; i-- {
		if opensSymbol.MatchString(lines[i]) {
			s := strings.TrimSpace(blankRun.ReplaceAllString(lines[i], " "))
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
