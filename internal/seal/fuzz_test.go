package seal

import (
	"bytes"
	"strings"
	"testing"
)

// Unseal opens a sealed value for its purpose alone, and no other text. Consent
// tickets, client ids and signed links rely on this.
func FuzzUnseal(f *testing.F) {
	k, err := Parse(strings.Repeat("ab", 32))
	if err != nil {
		f.Fatal(err)
	}
	for _, plain := range []string{"", "{}", "a ticket"} {
		f.Add("ticket", k.Seal("ticket", []byte(plain)), []byte(plain))
	}
	f.Add("ticket", "", []byte{0})
	f.Add("", "!", []byte("\xff"))
	f.Fuzz(func(t *testing.T, purpose, sealed string, plain []byte) {
		if got, err := k.Unseal(purpose, sealed); err == nil {
			if again, err := k.Unseal(purpose, k.Seal(purpose, got)); err != nil || !bytes.Equal(again, got) {
				t.Errorf("%q is opened and not sealed again", sealed)
			}
		}
		s := k.Seal(purpose, plain)
		if got, err := k.Unseal(purpose, s); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("what is sealed is not opened: %v", err)
		}
		if _, err := k.Unseal(purpose+"x", s); err == nil {
			t.Error("it is opened for another purpose")
		}
		for _, i := range []int{0, len(s) / 2, len(s) - 1} {
			c := byte('A')
			if s[i] == c {
				c = 'B'
			}
			changed := s[:i] + string(c) + s[i+1:]
			if got, err := k.Unseal(purpose, changed); err == nil && changed != s && i != len(s)-1 { // the last character has unused bits
				t.Errorf("it is opened although changed: %q", got)
			}
		}
	})
}
