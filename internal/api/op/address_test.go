package op

import "testing"

func TestIsAddress(t *testing.T) {
	for s, want := range map[string]bool{
		"ada@acme.example": true, "a.b+c@x.example": true, "größe@acme.example": true,
		"\u202eevil\x1b[31m@x.example": false, "a\u200bda@acme.example": false, "a\u3164b@acme.example": false,
		"ada@acme\u202e.example": false,
		"typo,two@acme.example":  true, "Ada <ada@acme.example>": false, "ada": false, "": false, " ada@acme.example": false,
		"ada@acme.example(eve)": false, "(eve)ada@acme.example": false, "ada@eve@acme.example": false, "@acme.example": false,
		"ada@":            false,
		"ada@[127.0.0.1]": false, "ada@[IPv6:::1]": false, "ada@127.0.0.1": false,
		"ada@0x7f.0x1":  false,
		"ada@１２７．０．０．１": false,
		"ada@localhost": false, "ada@LOCALHOST": false, "ada@mail.localhost": false, "ada@localhost.localdomain": false,
		"ada@ｌｏｃａｌｈｏｓｔ": false, "ada@x.ｌｏｃａｌｈｏｓｔ": false, "ada@acme": false, "ada@acme.example.": false, "ada@.example": false,
		"ada@acme..example": false, "ada@-acme.example": false, "ada@acme_1.example": false, "ada@acme.example:25": false,
		"a\u202eda@acme.example": false, "ada@acme.example\u2028bcc:x": false, "ada\u2029@acme.example": false,
		"a\u0085@acme.example":  false,
		"a\u00a0b@acme.example": false, "a\tb@acme.example": false, "ada\r\nbcc:eve@acme.example": false, "a\xff@acme.example": false,
		"a..b@acme.example": false, ".a@acme.example": false, "ada@größe.example": true, "ada@xn--gre-6ka8i.example": true,
		"ada@1.example": true, "o'hara@acme.co.uk": true,
		`"ada"@acme.example`: false, "ad\x00a@acme.example": false, "ada@ac\u00adme.example": false,
	} {
		if got := IsAddress(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
