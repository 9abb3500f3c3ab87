package seal

import (
	"strings"
	"testing"
)

func TestSealing(t *testing.T) {
	k := New()
	sealed := k.Seal("provider-key/a", []byte("sk-secret"))
	if strings.Contains(sealed, "secret") || sealed == k.Seal("provider-key/a", []byte("sk-secret")) {
		t.Error("the sealed form shows something")
	}
	if b, err := k.Unseal("provider-key/a", sealed); err != nil || string(b) != "sk-secret" {
		t.Errorf("%q, %v", b, err)
	}
	other, err := Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	damaged := []byte(sealed)
	if damaged[len(damaged)-4] ^= 1; damaged[len(damaged)-4] == '@' || damaged[len(damaged)-4] == '`' {
		damaged[len(damaged)-4] = 'z' // what is no base64 is another case
	}
	for name, try := range map[string]func() ([]byte, error){
		"another purpose": func() ([]byte, error) { return k.Unseal("provider-key/b", sealed) },
		"another key":     func() ([]byte, error) { return other.Unseal("provider-key/a", sealed) },
		"damaged":         func() ([]byte, error) { return k.Unseal("provider-key/a", string(damaged)) },
		"no version":      func() ([]byte, error) { return k.Unseal("provider-key/a", sealed[3:]) },
		"no base64":       func() ([]byte, error) { return k.Unseal("provider-key/a", sealed[:12]+"*") },
	} {
		if b, err := try(); err == nil || b != nil {
			t.Errorf("%s: opened as %q", name, b)
		}
	}
}

func TestPasswords(t *testing.T) {
	h := Password("correct horse")
	if !strings.HasPrefix(h, "$argon2id$v=19$m=19456,t=2,p=1$") || h == Password("correct horse") {
		t.Errorf("hash %q", h)
	}
	if !CheckPassword(h, "correct horse") {
		t.Error("the right password is refused")
	}
	for _, c := range [][2]string{{h, "wrong horse"}, {h, ""}, {"", "a password nobody has"}, {"$argon2i$x", "x"}, {"garbage", "x"},
		{strings.Replace(h, "p=1", "p=0", 1), "correct horse"}} {
		if CheckPassword(c[0], c[1]) {
			t.Errorf("%q opens %q", c[1], c[0])
		}
	}
}
