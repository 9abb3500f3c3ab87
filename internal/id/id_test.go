package id

import (
	"strings"
	"testing"
)

func TestSecrets(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		s := Secret(PAT)
		if seen[s] || !Checked(PAT, s) || len(s) != len(PAT)+49 {
			t.Fatalf("secret %q", s)
		}
		seen[s] = true
		// A scanner, and Checked, distinguish a damaged token from a real one.
		broken := []byte(s)
		at := len(PAT) + 7
		if broken[at] == 'x' {
			broken[at] = 'y'
		} else {
			broken[at] = 'x'
		}
		if Checked(PAT, string(broken)) || Checked(RunToken, s) || Checked(PAT, s[:len(s)-1]) || Checked(PAT, "") {
			t.Fatalf("a wrong token passes the check: %q", s)
		}
	}
}

func TestIDs(t *testing.T) {
	a, b := New(), New()
	if a >= b {
		t.Errorf("%s does not sort before %s", a, b)
	}
	for _, s := range []string{a, b, Random()} {
		if !Valid(s) || Valid(strings.ToUpper(s)) || Valid(s[1:]) || Valid("{"+s+"}") {
			t.Errorf("Valid is wrong about %s", s)
		}
	}
	if r := Random(); r[14] != '4' {
		t.Errorf("%s is not random", r)
	}
}
