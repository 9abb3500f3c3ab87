package seal

import (
	"strings"
	"testing"
	"time"
)

func TestLink(t *testing.T) {
	k, err := Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Parse(strings.Repeat("cd", 32))
	if err != nil {
		t.Fatal(err)
	}
	l := Link{"id", "acct", time.Unix(1_700_000_000, 0).UTC()}
	token := k.SignLink("fix", l)
	if got, err := k.ReadLink("fix", token); err != nil || got != l {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := k.ReadLink("action", token); err == nil {
		t.Error("read for another purpose")
	}
	if _, err := other.ReadLink("fix", token); err == nil {
		t.Error("read with another key")
	}
	parts := strings.Split(token, ".")
	for _, bad := range []string{"", ".", "..", token + "A", token[:len(token)-1], "x" + token, parts[0] + "." + parts[1] + ".",
		"eyJhbGciOiJub25lIn0." + parts[1] + ".", parts[0] + "." + parts[1] + "A." + parts[2], strings.Repeat("a", 5000)} {
		if _, err := k.ReadLink("fix", bad); err == nil {
			t.Errorf("read %q", bad)
		}
	}
}
