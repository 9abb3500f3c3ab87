package inert

import (
	"encoding/json"
	"testing"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain ünïcode 字":                       "plain ünïcode 字",
		"\x1b[31mred\x1b]0;owned\x07":           "[31mred]0;owned",
		"a\tb\nc\r":                             "a b c",
		"\u009b2J":                              "2J",
		"abc\u202egpj.exe\u2066":                "abcgpj.exe",
		"ad\u200bmin\ufeff\u3164":               "admin",
		"a\u2800\ufe0fb\ufe0f\ufe01c\U000e0100": "abc",
		"⚠\ufe0f ↔\ufe0e 1\ufe0f\u20e3 ‼\ufe0f": "⚠\ufe0f ↔\ufe0e 1\ufe0f\u20e3 ‼\ufe0f",
		"⚠\ufe0f\ufe0f ⚠\u200b\ufe0f":           "⚠\ufe0f ⚠",
		"remote: denied\nfatal: no access\n":    "remote: denied fatal: no access",
		"a\r\nb":                                "a b",
	} {
		if got := Line(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestEscape(t *testing.T) {
	const text = "a\u009b2J\u202eb\x7f\n\tc\u200b\u2066\ufeff\u2028\U000e0041⚠\ufe0f 字"
	if got, want := Escape(text), "a\\u009b2J\\u202eb\\u007f\n\tc\\u200b\\u2066\\ufeff\\u2028\\udb40\\udc41⚠\ufe0f 字"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	const unseen = "a\u2800b\ufe0f⚠\ufe0f\ufe0e\U000e0100"
	if got, want := Escape(unseen), "a\\u2800b\\ufe0f⚠\ufe0f\\ufe0e\\udb40\\udd00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var back string
	if err := json.Unmarshal([]byte(Escape("\"a\u009b2J\u202eb\U000e0041\"")), &back); err != nil || back != "a\u009b2J\u202eb\U000e0041" {
		t.Errorf("%q, %v", back, err)
	}
}

func TestLines(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\n\n  b\u202ec\n": "a\n\nbc", "gh\u200bp_x\u2028y": "ghp_xy", "\n \n": "", "one": "one",
	} {
		if got := Lines(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
