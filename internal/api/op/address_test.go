package op

import "testing"

func TestIsAddress(t *testing.T) {
	for s, want := range map[string]bool{
		"ada@acme.example": true, "a.b+c@x.example": true, "größe@acme.example": true,
		"\u202eevil\x1b[31m@x.example": false, "a\u200bda@acme.example": false, "a\u3164b@acme.example": false,
		"ada@acme\u202e.example": false,
		"typo,two@acme.example":  true, "Ada <ada@acme.example>": false, "ada": false, "": false, " ada@acme.example": false,
		"ada@acme.example(eve)": false, "(eve)ada@acme.example": false, "ada@eve@acme.example": false, "@acme.example": false,
		"ada@":               false,
		`"ada"@acme.example`: false, "ad\x00a@acme.example": false, "ada@ac\u00adme.example": false,
	} {
		if got := IsAddress(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
