package main

import (
	"strings"
	"testing"
	"unicode"

	"yardmaster/internal/mail"
)

// TestMailsAreInert checks that a name in a letter passes no control character to
// the reader's terminal.
func TestMailsAreInert(t *testing.T) {
	const nasty = "a\x1b]0;owned\x07\u202eb\u009b2J"
	l := mail.Letter{Message: mail.Message{To: nasty, Subject: nasty, Text: nasty + "\nhttps://yard.example/x\n"}, From: nasty}
	var b strings.Builder
	if err := showMail(&b, l); err != nil {
		t.Fatal(err)
	}
	if err := listMails(&b, []mail.Letter{l}); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(b.String(), "\n", "")
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) ||
		!strings.Contains(text, "https://yard.example/x") {
		t.Errorf("printed %q", text)
	}
}
