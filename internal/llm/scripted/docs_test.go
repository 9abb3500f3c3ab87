package scripted

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The document about scenarios shows a file that parses, and names every field.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n```yaml\n")
	example, after, ok := strings.Cut(rest, "\n```\n\n## ")
	if !ok {
		t.Fatal("there is no example")
	}
	if _, err := ParseScenarios([]byte(example)); err != nil {
		t.Error(err)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[scenario](), reflect.TypeFor[step](), reflect.TypeFor[failStep](),
		reflect.TypeFor[usageStep](), reflect.TypeFor[writeStep](), reflect.TypeFor[editStep](), reflect.TypeFor[toolStep]()} {
		for i := range of.NumField() {
			if name := of.Field(i).Tag.Get("yaml"); name != "" && !strings.Contains(after, name) {
				t.Errorf("the document does not say what %s is", name)
			}
		}
	}
}
