package protocol

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEventKinds holds that the list has the kinds that the box sends, and no other.
func TestEventKinds(t *testing.T) {
	text, err := os.ReadFile("protocol.go")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{} // of constants, by name
	for _, m := range regexp.MustCompile(`(?m)^\t(Event[A-Z]\w*) += "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		values[m[1]] = m[2]
	}
	sent := map[string]bool{}
	box := os.DirFS("../box")
	err = fs.WalkDir(box, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := fs.ReadFile(box, path)
		for _, m := range regexp.MustCompile(`\bprotocol\.(Event[A-Z]\w*)`).FindAllStringSubmatch(string(source), -1) {
			if v := values[m[1]]; v != "" {
				sent[v] = true
			}
		}
		return err
	})
	if err != nil || len(sent) == 0 {
		t.Fatalf("the box sends %v (%v)", sent, err)
	}
	for _, kind := range EventKinds() {
		if !sent[kind] {
			t.Errorf("no box sends %s", kind)
		}
	}
	for kind := range sent {
		if !slices.Contains(EventKinds(), kind) {
			t.Errorf("boxes send %s, which is not listed", kind)
		}
	}
}
