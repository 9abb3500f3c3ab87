package client

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

// home makes an empty folder the home of the test, and answers an environment.
func home(t *testing.T, pairs ...string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	return func(key string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func put(t *testing.T, ring Keyring, logins ...Login) *Logins {
	t.Helper()
	all, err := ReadLogins()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logins {
		if err := all.Put(l, ring); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A stored token goes to the server alone that it is of.
func TestTokenStaysWithItsServer(t *testing.T) {
	env := home(t)
	put(t, nil, Login{Name: "one", URL: "http://one", Token: "1"}, Login{Name: "two", URL: "http://two", Token: "2"})
	set := func(pairs ...string) func(string) string {
		return func(key string) string {
			for i := 0; i+1 < len(pairs); i += 2 {
				if pairs[i] == key {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	for _, c := range []struct {
		env              func(string) string
		name, url, token string
	}{
		{env, "", "http://two", "2"},
		{env, "one", "http://one", "1"},
		{set("YARDMASTER_CONTEXT", "one"), "", "http://one", "1"},
		{set("YARDMASTER_URL", "http://one"), "", "http://one", "1"},
		{set("YARDMASTER_URL", "http://one/"), "", "http://one", "1"},
		{set("YARDMASTER_URL", "http://evil"), "", "http://evil", ""},
		{set("YARDMASTER_URL", "http://evil", "YARDMASTER_TOKEN", "t"), "", "http://evil", "t"},
		{set("YARDMASTER_URL", "http://evil", "YARDMASTER_CONTEXT", "one"), "", "http://evil", ""},
		{set("YARDMASTER_URL", "http://evil", "YARDMASTER_TOKEN", "t"), "one", "http://one", "1"},
		{set("YARDMASTER_TOKEN", "t"), "", "http://two", "t"},
		{set("YARDMASTER_TOKEN", " t\r\n"), "", "http://two", "t"},
		{set("YARDMASTER_TOKEN", "\n"), "", "http://two", "2"},
	} {
		l, err := LoadLogin(c.env, c.name, nil)
		if l.URL != c.url || l.Token != c.token || (c.token == "") != errors.Is(err, ErrNoLogin) {
			t.Errorf("%q with %s: %+v, %v", c.name, c.env("YARDMASTER_URL"), l, err)
		}
	}
	var bad BadToken
	_, err := LoadLogin(set("YARDMASTER_TOKEN", "t\nt"), "", nil)
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), `has '\n' in it`) {
		t.Errorf("a token of two lines: %v", err)
	}
	var unknown *UnknownContext
	if _, err := LoadLogin(env, "three", nil); !errors.As(err, &unknown) || !strings.Contains(err.Error(),
		"there is no context three; there are one, two") {
		t.Errorf("an unknown context: %v", err)
	}
}

// The file of an earlier version is read, and nobody else can read the new one.
func TestLoginFile(t *testing.T) {
	env := home(t)
	path, err := LoginFile()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := LoadLogin(env, "", nil); !errors.Is(err, ErrNoLogin) || l.URL != DefaultURL {
		t.Errorf("without a file: %+v, %v", l, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"url": "http://old", "token": "old"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := LoadLogin(env, "", nil); err != nil || l.Token != "old" || l.Name != "default" {
		t.Errorf("the file of before: %+v, %v", l, err)
	}
	all := put(t, nil, Login{Name: "new", URL: "http://new:1", Token: "n"})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for address, want := range map[string]string{"http://new:1": "new", "http://old": "default", "http://third:2": "third:2"} {
		if got := all.NameFor(address); got != want {
			t.Errorf("%s is kept as %q, not %q", address, got, want)
		}
	}
	if err := all.Remove("new", nil); err != nil || all.Current != "default" {
		t.Errorf("%q is used then, %v", all.Current, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadLogin(env, "", nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %v", err)
	}
}

// Where there is a keyring, no token is in the file.
func TestKeyringHoldsTheToken(t *testing.T) {
	env := home(t)
	keyring.MockInit()
	ring := SystemKeyring(func(key string) string {
		return map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}[key]
	})
	all := put(t, ring, Login{Name: "a", URL: "http://a", Token: "secret"})
	path, _ := LoginFile()
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "secret") {
		t.Errorf("%s, %v", b, err)
	}
	if l, err := LoadLogin(env, "", ring); err != nil || l.Token != "secret" {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := LoadLogin(env, "", nil); err == nil || !strings.Contains(err.Error(), "keyring") {
		t.Errorf("without the keyring: %v", err)
	}
	for range 2 {
		if err := all.Remove("a", ring); err != nil {
			t.Error(err)
		}
	}
	if _, err := ring.Get(entry("a", "http://a")); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("%v", err)
	}
	// A keyring that refuses leaves the token to the file.
	keyring.MockInitWithError(errors.New("locked"))
	put(t, ring, Login{Name: "b", URL: "http://b", Token: "kept"})
	if l, err := LoadLogin(env, "", nil); err != nil || l.Token != "kept" {
		t.Errorf("%+v, %v", l, err)
	}
	if SystemKeyring(env) != nil || SystemKeyring(func(string) string { return "off" }) != nil {
		t.Error("there is a keyring without a session")
	}
}
