package client

import "testing"

func TestInert(t *testing.T) {
	for in, want := range map[string]string{
		"plain ünïcode 字":             "plain ünïcode 字",
		"\x1b[31mred\x1b]0;owned\x07": "[31mred]0;owned",
		"a\tb\nc\r":                   "a bc",
		"\u009b2J":                    "2J",
		"abc\u202egpj.exe\u2066":      "abcgpj.exe",
	} {
		if got := Inert(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
