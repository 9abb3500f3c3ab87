package minisign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func private(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func keyOf(p ed25519.PrivateKey) Key { return KeyOf(p.Public().(ed25519.PublicKey)) }

func inBase64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func digest(t *testing.T, text string) [DigestSize]byte {
	t.Helper()
	d, err := Digest(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A signature holds for its file, its comment and its key, and for no other of them.
func TestSignatures(t *testing.T) {
	t.Parallel()
	mine, other := private(1), private(2)
	program := digest(t, "program")
	text := Sign(mine, program, "target:linux/amd64 version:1.2.3")
	got, err := Verify([]Key{keyOf(other), keyOf(mine)}, program, text)
	if err != nil || got != "target:linux/amd64 version:1.2.3" {
		t.Fatalf("%q, %v", got, err)
	}
	lines := strings.Split(text, "\n")
	raw, _ := base64.StdEncoding.DecodeString(lines[1])
	legacy := append([]byte("Ed"), raw[2:]...)
	elsewhere := strings.Split(Sign(mine, program, "c"), "\n")[3]
	moved := strings.Join(append(lines[:3:3], elsewhere, ""), "\n")
	stranger := keyOf(mine)
	stranger.Public = other.Public().(ed25519.PublicKey)
	for name, c := range map[string]struct {
		keys []Key
		file string
		text string
		want error
	}{
		"another file":                  {nil, "malware", text, ErrForged},
		"another comment":               {nil, "", strings.Replace(text, "1.2.3", "9.9.9", 1), ErrForged},
		"another key":                   {[]Key{keyOf(other)}, "", text, ErrKey},
		"no key":                        {[]Key{}, "", text, ErrKey},
		"a key without bytes":           {[]Key{{ID: keyOf(mine).ID}}, "", text, ErrKey},
		"another key of the same id":    {[]Key{stranger}, "", text, ErrForged},
		"the signature of another file": {nil, "", Sign(mine, digest(t, "x"), "target:linux/amd64 version:1.2.3"), ErrForged},
		"the second one of another":     {nil, "", moved, ErrForged},
		"without its comment":           {nil, "", strings.Join(lines[:2], "\n"), ErrForm},
		"over the file itself":          {nil, "", strings.Replace(text, lines[1], inBase64(legacy), 1), ErrForm},
		"with a line more":              {nil, "", text + "x\n", ErrForm},
		"with another end of lines":     {nil, "", strings.ReplaceAll(text, "\n", "\r\n"), ErrForged},
		"short":                         {nil, "", strings.Replace(text, lines[1], inBase64(raw[:40]), 1), ErrForm},
		"empty":                         {nil, "", "", ErrForm},
		"long":                          {nil, "", text + strings.Repeat(" ", maxText), ErrForm},
	} {
		keys, file := c.keys, program
		if keys == nil {
			keys = []Key{keyOf(mine)}
		}
		if c.file != "" {
			file = digest(t, c.file)
		}
		if got, err := Verify(keys, file, c.text); !errors.Is(err, c.want) || got != "" {
			t.Errorf("%s: %q, %v, want %v", name, got, err, c.want)
		}
	}
}

// A key is read as it is written, and nothing else is a key.
func TestKeys(t *testing.T) {
	t.Parallel()
	k := keyOf(private(1))
	got, err := ParseKey(" " + k.String() + "\n")
	if err != nil || got.ID != k.ID || !got.Public.Equal(k.Public) || len(k.Name()) != 16 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "x", k.String()[:20], k.String() + "AA", "AA" + k.String()[2:]} {
		if _, err := ParseKey(text); !errors.Is(err, ErrForm) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is no signature is refused, whatever it looks like.
func FuzzVerify(f *testing.F) {
	mine := private(1)
	d, err := Digest(strings.NewReader("program"))
	if err != nil {
		f.Fatal(err)
	}
	good := Sign(mine, d, "c")
	f.Add(good)
	f.Add("untrusted comment: x\n\ntrusted comment: \n\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Verify([]Key{keyOf(mine)}, d, text)
		if err == nil && (c != "c" || strings.Split(text, "\n")[3] != strings.Split(good, "\n")[3]) {
			t.Errorf("%q holds", text)
		}
	})
}
