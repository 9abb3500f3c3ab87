// Package inert makes text of agents, repositories and people harmless to show: it
// removes or reveals each character that would control a terminal, change the
// direction of text, or be invisible.
package inert

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
)

// blank is the Braille pattern without dots.
const blank = '\u2800'

// hidden tells whether a character has an effect or is invisible after the one before:
// controls, and characters that format text, change its direction, have no width, choose
// among drawings or end a line invisibly. A selector that draws a symbol as text or as a
// picture is not hidden. The dashboard has the same table, in ansi.ts.
func hidden(before, r rune) bool {
	if r == '\ufe0e' || r == '\ufe0f' {
		return !takesSelector(before)
	}
	return unicode.IsControl(r) || r == blank ||
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// takesSelector tells whether a character may be drawn as text and as a picture.
func takesSelector(r rune) bool {
	return r > unicode.MaxASCII && r != blank && unicode.Is(unicode.S, r) || strings.ContainsRune("0123456789#*\u203c\u2049\u3030", r)
}

// Line puts text on one line and removes hidden characters. Line ends and tabs
// become spaces.
func Line(s string) string { return strings.TrimSpace(Indented(s)) }

// Indented is Line with the spaces before the text.
func Indented(s string) string {
	var last rune
	return strings.TrimRightFunc(strings.Map(func(r rune) rune {
		before := last
		last = r
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case hidden(before, r):
			return -1
		}
		return r
	}, s), unicode.IsSpace)
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
	var before rune
	for _, r := range s {
		unseen := hidden(before, r)
		before = r
		switch {
		case r == '\n' || r == '\t' || !unseen:
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

var ticks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`{3,}") })

// Fence puts text into a block of code of Markdown that the text cannot end.
func Fence(text string) string {
	fence := "```"
	for _, run := range ticks().FindAllString(text, -1) {
		if len(run) >= len(fence) {
			fence = strings.Repeat("`", len(run)+1)
		}
	}
	if len(fence) > 200 { // a run of ticks is no text
		text, fence = ticks().ReplaceAllString(text, "``"), "```"
	}
	return fence + "text\n" + text + "\n" + fence
}
