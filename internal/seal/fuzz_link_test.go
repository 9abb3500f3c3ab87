package seal

import (
	"strings"
	"testing"
	"time"
)

// ReadLink reads a signed link for its purpose alone, and refuses every other text.
// Fix links and other signed texts rely on this.
func FuzzReadLink(f *testing.F) {
	k, err := Parse(strings.Repeat("ab", 32))
	if err != nil {
		f.Fatal(err)
	}
	other, err := Parse(strings.Repeat("cd", 32))
	if err != nil {
		f.Fatal(err)
	}
	whole := k.SignLink("blocker-fix", Link{"b", "a", time.Unix(1_800_000_000, 0)})
	parts := strings.Split(whole, ".")
	for _, token := range []string{
		whole, "", ".", "..", "...", whole + ".", "." + whole, whole + "=", whole + "\n", strings.ToUpper(whole),
		parts[0] + "." + parts[1] + ".", parts[0] + ".." + parts[2],
		"eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + ".", "eyJhbGciOiJub25lIn0." + parts[1] + "." + parts[2],
		strings.Repeat("a", 5000) + "." + parts[2],
	} {
		f.Add("blocker-fix", token, "b", "a", int64(1_800_000_000))
	}
	f.Add("", "\xff.\x00", "\xff", "\x00", int64(-1))
	f.Fuzz(func(t *testing.T, purpose, token, subject, account string, expires int64) {
		if l, err := k.ReadLink(purpose, token); err == nil && k.SignLink(purpose, l) != token {
			t.Errorf("%q is read as %+v, which is signed otherwise", token, l)
		}
		expires %= 1 << 40
		l := Link{strings.ToValidUTF8(subject, "?"), strings.ToValidUTF8(account, "?"), time.Unix(expires, 0).UTC()}
		if purpose = strings.ToValidUTF8(purpose, "?"); len(purpose)+len(subject)+len(account) > 100 {
			return // ReadLink refuses a link that is too long
		}
		s := k.SignLink(purpose, l)
		if got, err := k.ReadLink(purpose, s); err != nil || got != l {
			t.Errorf("%+v is read as %+v: %v", l, got, err)
		}
		if _, err := k.ReadLink(purpose+"x", s); err == nil {
			t.Error("it is read for another purpose")
		}
		if _, err := other.ReadLink(purpose, s); err == nil {
			t.Error("it is read with another key")
		}
		for i := 0; i < len(s); i += 7 {
			c := byte('A')
			if s[i] == c {
				c = 'B'
			}
			if got, err := k.ReadLink(purpose, s[:i]+string(c)+s[i+1:]); err == nil {
				t.Errorf("it is read although changed at %d: %+v", i, got)
			}
		}
	})
}
