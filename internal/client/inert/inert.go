// Package inert shows text of agents, repositories and people as what it is: a
// reader sees every character that would steer a terminal, turn the order of
// what follows, or hide.
package inert

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// hidden are characters that are acted upon or not seen: controls, and those
// that format text, turn its direction, have no width or end lines unseen.
// Those that only choose how the one before is drawn are not meant.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// Line puts text on one line and leaves out what is hidden; what was on several
// lines stays apart by a space.
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

// Escape keeps all of a text and shows what is hidden as JSON escapes it, so that
// JSON stays the same JSON. Line ends and tabs are left.
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
