package github

import (
	"strconv"
	"strings"

	"yardmaster/internal/lazy"
)

// change is a file of a diff.
type change struct {
	path, old string // old is the former path of a renamed file
	status    string // added, removed, modified, renamed, copied, changed
	blob      string
	added     int
	deleted   int
	patch     string // from the first @@; empty for binary files
}

// diff lists the files that differ between two commits, as GitHub does: with renames,
// and three lines around each change.
func (r *Repo) diff(from, to string) []change {
	raw := strings.Split(r.mustKnow("diff", "--raw", "-z", "-M", "--full-index", from, to, "--"), "\x00")
	var out []change
	for i := 0; i+1 < len(raw); {
		f := strings.Fields(raw[i]) // :mode mode blob blob status
		c := change{blob: f[3], path: raw[i+1]}
		i += 2
		switch f[4][0] {
		case 'A':
			c.status = "added"
		case 'D':
			c.status, c.blob = "removed", f[2]
		case 'R', 'C':
			c.old, c.path = c.path, raw[i]
			c.status = map[byte]string{'R': "renamed", 'C': "copied"}[f[4][0]]
			i++
		case 'T':
			c.status = "changed"
		default:
			c.status = "modified"
		}
		out = append(out, c)
	}
	for i, text := range sections(r.mustKnow("diff", "-M", "--no-color", "--full-index", "--no-ext-diff", from, to, "--")) {
		if i >= len(out) {
			break // a change of type has two sections; none of our tests looks at its patch
		}
		out[i].patch = text
		for line := range strings.SplitSeq(text, "\n") {
			switch {
			case strings.HasPrefix(line, "+"):
				out[i].added++
			case strings.HasPrefix(line, "-"):
				out[i].deleted++
			}
		}
	}
	return out
}

// sections takes a diff apart by files and returns their hunks.
func sections(text string) []string {
	var out []string
	in := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			out, in = append(out, ""), false
		case strings.HasPrefix(line, "@@ "), in:
			if in {
				out[len(out)-1] += "\n"
			}
			in = true
			out[len(out)-1] += line
		}
	}
	return out
}

// hunk is a part of a diff that lines of comments may be in.
type hunk struct {
	text               string
	position           int // of its first line after the @@, in the whole diff of the file
	oldStart, newStart int
	lines              []string
}

var hunkHead = lazy.New(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`)

// hunks takes the patch of a file apart.
func hunks(patch string) (out []hunk) {
	position := 0
	for line := range strings.SplitSeq(patch, "\n") {
		if m := hunkHead.FindStringSubmatch(line); m != nil {
			h := hunk{text: line, position: position + 1}
			h.oldStart, _ = strconv.Atoi(m[1])
			h.newStart, _ = strconv.Atoi(m[2])
			out = append(out, h)
		} else if len(out) > 0 {
			out[len(out)-1].lines = append(out[len(out)-1].lines, line)
		}
		position++
	}
	return out
}

// anchor is a line of a diff.
type anchor struct {
	hunk, at int // index of the hunk, and of the line in it
	position int // in the whole diff; GitHub counts the @@ of later hunks
	text     string
}

// find looks for a line in the hunks: on the RIGHT side a line of the new file, on the
// LEFT one of the old file. Lines of context are on both sides.
func find(all []hunk, side string, line int) (anchor, bool) {
	for i, h := range all {
		old, now := h.oldStart, h.newStart
		for j, text := range h.lines {
			left, right := true, true
			switch {
			case strings.HasPrefix(text, "+"):
				left = false
			case strings.HasPrefix(text, "-"):
				right = false
			case strings.HasPrefix(text, `\`):
				continue
			}
			if side == "LEFT" && left && old == line || side != "LEFT" && right && now == line {
				return anchor{hunk: i, at: j, position: h.position + j, text: text}, true
			}
			if left {
				old++
			}
			if right {
				now++
			}
		}
	}
	return anchor{}, false
}

// at returns the side and line of a position of the diff.
func at(all []hunk, position int) (side string, line int, ok bool) {
	for _, h := range all {
		old, now := h.oldStart, h.newStart
		for j, text := range h.lines {
			side, line = "RIGHT", now
			if strings.HasPrefix(text, "-") {
				side, line = "LEFT", old
			}
			if h.position+j == position {
				return side, line, true
			}
			if !strings.HasPrefix(text, "+") {
				old++
			}
			if !strings.HasPrefix(text, "-") {
				now++
			}
		}
	}
	return "", 0, false
}

// excerpt is the hunk as a comment shows it: up to its line.
func excerpt(h hunk, to int) string {
	return strings.Join(append([]string{h.text}, h.lines[:to+1]...), "\n")
}

// carry returns the line of the new file that a line of the old one has become, or 0
// if it was changed.
func (r *Repo) carry(from, to, path string, line int) int {
	if from == to {
		return line
	}
	text := r.mustKnow("diff", "--no-color", "-U0", "--no-renames", from, to, "--", path)
	moved := 0
	for _, one := range sections(text) {
		for head := range strings.SplitSeq(one, "\n") {
			m := hunkSpan.FindStringSubmatch(head)
			if m == nil {
				continue
			}
			start, old, now := number(m[1], 0), number(m[2], 1), number(m[4], 1)
			if old == 0 {
				start++ // lines were put in after this one
			}
			switch {
			case line < start:
				return line + moved
			case line < start+old:
				return 0
			}
			moved += now - old
		}
	}
	if _, there := r.file(to, path); !there {
		return 0
	}
	return line + moved
}

var hunkSpan = lazy.New(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

func number(s string, otherwise int) int {
	if s == "" {
		return otherwise
	}
	n, _ := strconv.Atoi(s)
	return n
}
