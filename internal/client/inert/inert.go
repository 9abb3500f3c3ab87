// Package inert makes text of agents, repositories and people harmless to show: it
// removes or reveals each character that would control a terminal, change the
// direction of text, or be invisible.
package inert

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
)

// hidden tells whether a character has an effect or is invisible: controls, and
// characters that format text, change its direction, have no width or end a line
// invisibly. Characters that only choose the rendering of the one before are not
// hidden.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// Line puts text on one line and removes hidden characters. Line ends and tabs
// become spaces.
func Line(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case hidden(r):
			return -1
		}
		return r
	}, s))
}

// Lines is Line of each line of a text, without empty lines at its ends.
func Lines(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		out = append(out, Line(line))
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// Escape keeps the whole text and writes hidden characters as JSON escapes, so that
// JSON keeps its meaning. Line ends and tabs are unchanged.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

var ticks = regexp.MustCompile("`{3,}")

// Fence puts text into a block of code of Markdown that the text cannot end.
func Fence(text string) string {
	fence := "```"
	for _, run := range ticks.FindAllString(text, -1) {
		if len(run) >= len(fence) {
			fence = strings.Repeat("`", len(run)+1)
		}
	}
	if len(fence) > 200 { // a run of ticks is no text
		text, fence = ticks.ReplaceAllString(text, "``"), "```"
	}
	return fence + "text\n" + text + "\n" + fence
}
