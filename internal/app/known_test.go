package app

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/domain/task"
	"yardmaster/internal/llm"
)

// TestKnownValues holds that a field which lists values lists a whole catalogue, in words
// and as examples, that every catalogue is listed, and that fields with the providers of
// models have them all.
func TestKnownValues(t *testing.T) {
	t.Parallel()
	doc := documentOf(t)
	providers, said := 0, map[string]bool{}
	eachObject(doc, "", func(at string, s schema) {
		doc, _ := s["description"].(string)
		if _, list, ok := strings.Cut(doc, "Known are "); ok {
			list, _, _ = strings.Cut(list, "; there may be others.")
			said[list] = true
			examples, err := json.Marshal(s["examples"])
			want, err2 := json.Marshal(strings.Split(list, ", "))
			if err != nil || err2 != nil || string(examples) != string(want) {
				t.Errorf("%s names %s, and has the examples %s", at, list, examples)
			}
		}
	})
	for name, list := range known() {
		if !said[strings.Join(list, ", ")] {
			t.Errorf("no field lists %s", name)
		}
	}
	if len(said) != len(known()) {
		t.Errorf("the document lists %d catalogues, and there are %d", len(said), len(known()))
	}
	eachObject(doc, "", func(at string, s schema) {
		values, _ := s["enum"].([]any)
		if !slices.Contains(values, any("anthropic")) {
			return
		}
		providers++
		for _, p := range llm.Providers() {
			if !slices.Contains(values, any(string(p))) {
				t.Errorf("%s lacks the provider %s", at, p)
			}
		}
	})
	if providers == 0 {
		t.Error("no field lists the providers of models")
	}
}

// TestHoldReasons holds that every reason that the program declares is listed.
func TestHoldReasons(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../domain/task/hold.go")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^\tHold[A-Z]\w* += "([^"]+)"`).FindAllStringSubmatch(string(text), -1)
	if len(all) == 0 {
		t.Fatal("no reasons are declared in hold.go")
	}
	for _, m := range all {
		if !slices.Contains(task.HoldReasons(), m[1]) {
			t.Errorf("%s is not listed", m[1])
		}
	}
}
