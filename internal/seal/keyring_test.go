package seal

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func ring(t *testing.T, keys ...string) *Keyring {
	t.Helper()
	var text []string
	for _, k := range keys {
		text = append(text, strings.Repeat(k, 32))
	}
	k, err := Parse(strings.Join(text, ","))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// before is a value that the program sealed for "bus-keys" with the key of 32 bytes
// ab, when values did not name their key.
const before = "v1.BKiyl1HSN8Os9z86n4uhY4MX3HG3cr8gkjj9vn_0G5E2pUS9VeuG"

// A sealed or signed value stays valid after another key has replaced its key, and
// is invalid without its key.
func TestKeysFollowEachOther(t *testing.T) {
	old, young := ring(t, "ab"), ring(t, "cd")
	both := ring(t, "cd", "ab")
	if both.ID() != young.ID() || !slices.Equal(both.IDs(), []string{young.ID(), old.ID()}) || old.ID() == young.ID() ||
		len(old.ID()) != 8 {
		t.Fatalf("ids %q, %q of %q", both.IDs(), young.ID(), old.ID())
	}
	for name, sealed := range map[string]string{"the old form": before, "today's form": old.Seal("bus-keys", []byte("the old one"))} {
		plain, id, err := both.UnsealWith("bus-keys", sealed)
		if err != nil || id != old.ID() || string(plain) != "the old one" {
			t.Errorf("%s: %q by %q, %v", name, plain, id, err)
		}
		if _, err := young.Unseal("bus-keys", sealed); err == nil {
			t.Errorf("%s: opened without its key", name)
		}
	}
	var unknown *UnknownKeyError
	if _, err := young.Unseal("p", old.Seal("p", nil)); !errors.As(err, &unknown) || unknown.ID != old.ID() {
		t.Errorf("the wanted key is not named: %v", err)
	}
	sealed := both.Seal("p", []byte("x"))
	if KeyOf(sealed) != young.ID() || KeyOf(before) != "" || KeyOf("v2.x") != "" {
		t.Errorf("%s is sealed with %q", sealed, KeyOf(sealed))
	}
	if plain, err := young.Unseal("p", sealed); err != nil || string(plain) != "x" {
		t.Errorf("not sealed by the first: %v", err)
	}

	l := Link{"id", "acct", time.Unix(1_700_000_000, 0).UTC()}
	if got, err := both.ReadLink("fix", old.SignLink("fix", l)); err != nil || got != l {
		t.Errorf("a link of the old key: %+v, %v", got, err)
	}
	if _, err := young.ReadLink("fix", old.SignLink("fix", l)); err == nil {
		t.Error("a link is read without its key")
	}
	if both.SignLink("fix", l) != young.SignLink("fix", l) {
		t.Error("links are not signed by the first key")
	}
	if all := both.Signatures("p", []byte("m")); !bytes.Equal(all[0], young.Sign("p", []byte("m"))) ||
		!bytes.Equal(all[1], old.Sign("p", []byte("m"))) {
		t.Error("the signatures are others")
	}
	s := both.Signers("p")
	if !s[1].Equal(old.Signers("p")[0]) || s[0].Equal(s[1]) || s[0].Equal(both.Signers("q")[0]) {
		t.Error("the signers are others")
	}
	if !ed25519.Verify(old.Signers("p")[0].Public().(ed25519.PublicKey), []byte("m"), ed25519.Sign(s[1], []byte("m"))) {
		t.Error("an old signature is not verified")
	}
	if alone := both.Without(old.ID()); !slices.Equal(alone.IDs(), young.IDs()) || len(both.IDs()) != 2 {
		t.Errorf("without the old one: %q", alone.IDs())
	}
}

func TestParse(t *testing.T) {
	a, b := strings.Repeat("ab", 32), strings.Repeat("CD", 32)
	for _, text := range []string{a + "," + b, a + "\n" + b + "\n", " " + a + " ,\r\n" + b} {
		if k, err := Parse(text); err != nil || len(k.IDs()) != 2 || k.ID() != ring(t, "ab").ID() {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{"": "there is no master key", "\n": "there is no master key", "xy": "64 hex digits",
		a[2:]: "64 hex digits",
		a + b: "64 hex digits", a + "," + a: "twice", a + ",x": "64 hex digits"} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || text != "" && strings.Contains(err.Error(), a[:16]) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Concurrent starters agree on one key, which only its owner can read.
func TestOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	var mu sync.Mutex
	made := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ours, err := New().Create(path)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ours {
				made++
			}
		})
	}
	wg.Wait()
	k, err := Read(path)
	if err != nil || made != 1 {
		t.Fatalf("%d were made; %v", made, err)
	}
	closed := func() {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(names) != 1 {
			t.Errorf("beside it lies %q", names)
		}
	}
	closed()
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".key-killed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	two, err := New().Before(k)
	if err != nil {
		t.Fatal(err)
	}
	if err := two.Replace(path); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !slices.Equal(got.IDs(), two.IDs()) {
		t.Errorf("replaced by %v, %v", got, err)
	}
	closed()
}
