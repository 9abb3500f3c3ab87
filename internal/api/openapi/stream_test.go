package openapi_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/policy"
)

// Each id in the example of a stream is one that its parameter Last-Event-ID lets pass,
// that of the end too.
func TestFramesHaveIDsThatTheStreamTakes(t *testing.T) {
	t.Parallel()
	b, err := openapi.Render(openapi.About{}, []op.Op{
		op.Stream(op.Row{ID: "item.tail", Method: "GET", Path: "/v1/items/tail", Group: "Items", Rule: policy.Require(policy.ReadTasks),
			Summary: "Follow", Resume: true, Events: []op.Event{
				{Name: "row", Data: renamed{}, ID: true, Doc: "One."}, {Name: "end", Data: renamed{}, ID: true, Doc: "All."},
			}}, func(context.Context, op.None, *op.Sink) error { return nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	pattern, _ := walk(doc, []any{"components", "parameters", "Last-Event-ID", "schema", "pattern"}).(string)
	example, _ := walk(doc, []any{"paths", "/v1/items/tail", "get", "responses", "200", "content", "text/event-stream", "example"}).(string)
	takes, err := regexp.Compile(pattern)
	if err != nil || pattern == "" {
		t.Fatalf("pattern %q: %v", pattern, err)
	}
	var got []string
	for line := range strings.Lines(example) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "id: "); ok {
			got = append(got, id)
			if !takes.MatchString(id) {
				t.Errorf("the frame %s has an id that %s refuses", id, pattern)
			}
		}
	}
	if strings.Join(got, " ") != "1 1.end" {
		t.Errorf("the ids of the example are %q", got)
	}
	for _, id := range []string{"", "end", "1.ends", "-1"} {
		if takes.MatchString(id) {
			t.Errorf("%s takes %q", pattern, id)
		}
	}
}
