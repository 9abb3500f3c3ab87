package seal

import (
	"strings"
	"testing"
)

func TestRecipient(t *testing.T) {
	a, err := NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := SealTo(a.Public(), "run/1", []byte("the value"))
	if err != nil || strings.Contains(sealed, "value") {
		t.Fatal(sealed, err)
	}
	if plain, err := a.Open("run/1", sealed); err != nil || string(plain) != "the value" {
		t.Error(string(plain), err)
	}
	if _, err := a.Open("run/2", sealed); err == nil {
		t.Error("opened for another purpose")
	}
	if _, err := b.Open("run/1", sealed); err == nil {
		t.Error("opened by another process")
	}
	for _, public := range []string{"", "?", "AAAA"} {
		if _, err := SealTo(public, "run/1", nil); err == nil {
			t.Errorf("sealed to %q", public)
		}
	}
}
