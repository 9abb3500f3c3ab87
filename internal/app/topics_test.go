package app

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/domain/stream"
	"yardmaster/internal/event"
)

// TestTopicsOfEvents holds that a kind of event belongs to the topic in which
// clients are sent the rows that it changes.
func TestTopicsOfEvents(t *testing.T) {
	all := topics(parts{})
	for _, k := range event.Kinds() {
		noun, _, _ := strings.Cut(k.Name(), ".")
		i := slices.IndexFunc(all, func(s stream.Topic) bool { return slices.Contains(s.Kinds, noun) })
		got := *k.Topic()
		if i < 0 {
			if got.Name != "" || got.Scope == "" {
				t.Errorf("%s is of the topic %+v, which shows no %s", k.Name(), got, noun)
			}
			continue
		}
		if s := all[i]; got != (event.Topic{Name: s.Name, Scope: s.Scope, Key: s.Key, Fixed: s.Fixed}) {
			t.Errorf("%s is of the topic %+v, but clients are sent %s, with scope %s, key %q and fixed %v", k.Name(), got, s.Name, s.Scope, s.Key, s.Fixed)
		}
	}
}

// TestEventsAreDescribed holds that the schema of every event can be written
// down: each member of its data has a name and a sentence.
func TestEventsAreDescribed(t *testing.T) {
	for _, k := range event.Kinds() {
		for _, f := range reflect.VisibleFields(k.Data()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "-" {
				continue
			}
			if name == "" || f.Tag.Get("doc") == "" {
				t.Errorf("%s: the member %s of its data has no name or no sentence", k.Name(), f.Name)
			}
		}
	}
}
