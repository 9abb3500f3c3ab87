package codehost

import (
	"errors"
	"testing"
)

// named is a host of which the address is known, and a forge without capabilities.
type named struct {
	Host
	NoForge
	at string
}

func (n named) CloneURL(r Repo) string { return n.at + r.String() }

// shown is a host with pages for people.
type shown struct{ named }

func (s shown) WebURL(r Repo) string { return s.at + "pages/" + r.String() }

// People see a repository where its host has pages about it, and nowhere else.
func TestWebURL(t *testing.T) {
	t.Parallel()
	a, b := named{at: "http://a/"}, shown{named{at: "http://b/"}}
	hosts := NewHosts(map[string]Sides{"a": {Host: a, Forge: a}, "b": {Host: b, Forge: b}})
	for name, want := range map[string]string{"a": "", "b": "http://b/pages/acme/web", "c": ""} {
		if url := hosts.WebURL(Repo{Host: name, Owner: "acme", Name: "web"}); url != want {
			t.Errorf("at %s it is %q, not %q", name, url, want)
		}
	}
}

func TestHosts(t *testing.T) {
	a, b := named{at: "http://a/"}, named{at: "http://b/"}
	given := map[string]Sides{"a": {Host: a, Forge: a}, "b": {Host: b, Forge: b}}
	hosts := NewHosts(given)
	delete(given, "b")
	for name, want := range map[string]named{"a": a, "b": b} {
		r := Repo{Host: name, Owner: "acme", Name: "web"}
		if h, err := hosts.Of(r); h != want || err != nil {
			t.Errorf("Of at %s = %v, %v", name, h, err)
		}
		if f, err := hosts.Forge(r); f != want || err != nil {
			t.Errorf("Forge at %s = %v, %v", name, f, err)
		}
		if url := hosts.CloneURL(r); url != want.at+"acme/web" {
			t.Errorf("CloneURL at %s = %q", name, url)
		}
	}
	for _, name := range []string{"", "c"} {
		r := Repo{Host: name, Owner: "acme", Name: "web"}
		if _, err := hosts.Of(r); !errors.Is(err, ErrUnknownHost) {
			t.Errorf("Of at %q: %v", name, err)
		}
		if _, err := hosts.Forge(r); !errors.Is(err, ErrUnknownHost) {
			t.Errorf("Forge at %q: %v", name, err)
		}
		if url := hosts.CloneURL(r); url != "" {
			t.Errorf("CloneURL at %q = %q", name, url)
		}
	}
}

func TestHostsAreWhole(t *testing.T) {
	whole := Sides{Host: named{}, Forge: named{}}
	for what, all := range map[string]map[string]Sides{
		"no name": {"": whole}, "no host": {"a": {Forge: named{}}}, "no forge": {"a": {Host: named{}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", what)
				}
			}()
			NewHosts(all)
		}()
	}
}

// A repository keeps its key through a rename where the host gave it an id.
func TestKey(t *testing.T) {
	r := Repo{Host: "a", Owner: "acme", Name: "web"}
	for what, other := range map[string]Repo{
		"host": {Host: "b", Owner: "acme", Name: "web"},
		"name": {Host: "a", Owner: "acme", Name: "app"},
		"id":   {Host: "a", ID: "1", Owner: "acme", Name: "web"},
	} {
		if r.Key() == other.Key() {
			t.Errorf("another %s, and the same key", what)
		}
	}
	if was, is := (Repo{"a", "1", "acme", "web"}), (Repo{"a", "1", "rival", "app"}); was.Key() != is.Key() {
		t.Error("a rename changes the key")
	}
}
