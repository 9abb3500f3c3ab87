package app

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/domain/stream"
	"yardmaster/internal/event"
)

// TestTopicsOfEvents holds that clients can follow every topic that has a name,
// that each has events, and that those of the rest are for somebody.
func TestTopicsOfEvents(t *testing.T) {
	t.Parallel()
	used := map[*event.Topic]bool{}
	for _, k := range event.Kinds() {
		used[k.Topic()] = true
		followed := slices.ContainsFunc(topics(wired{}), func(s stream.Topic) bool { return s.Topic == k.Topic() })
		if followed != (k.Topic().Name != "") || k.Topic().Scope == "" {
			t.Errorf("%s is of the topic %+v: clients can follow it: %v", k.Name(), *k.Topic(), followed)
		}
	}
	for _, s := range topics(wired{}) {
		if !used[s.Topic] && s.Follows == nil {
			t.Errorf("%s has no events", s.Name)
		}
	}
}

// TestEventsAreDescribed holds that the schema of every event can be written
// down: each member of its data has a name and a sentence.
func TestEventsAreDescribed(t *testing.T) {
	t.Parallel()
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
