package client

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Whatever a task may wait for has words, and the dashboard has the same ones.
func TestReasonsHaveWordsOnBothFaces(t *testing.T) {
	text, err := os.ReadFile("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas struct {
				TaskHold struct {
					Properties struct{ Reason struct{ Examples []string } }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	known := doc.Components.Schemas.TaskHold.Properties.Reason.Examples
	if len(known) < 20 {
		t.Fatalf("openapi.json knows the reasons %q", known)
	}
	page, err := os.ReadFile("../web/src/ui/say.ts")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): "([^"]+)",$`).FindAllStringSubmatch(string(page), -1) {
		shown[m[1]] = m[2]
	}
	for _, slug := range known {
		if words := reasons[slug]; words == "" || strings.Contains(words, "_") || shown[slug] != words {
			t.Errorf("a task waits %q: at a terminal %q, in the dashboard %q", slug, words, shown[slug])
		}
	}
	if len(shown) != len(reasons) {
		t.Errorf("the dashboard has words for %d reasons, the command line for %d", len(shown), len(reasons))
	}
}
