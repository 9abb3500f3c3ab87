package service

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// Every capability but streams is in the list, with what it needs.
func TestCallables(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	a, err := callables(document)
	if err != nil {
		t.Fatal(err)
	}
	var all []callable
	if err := json.Unmarshal(a.Body, &all); err != nil || len(all) < 200 {
		t.Fatalf("%d are listed: %v", len(all), err)
	}
	find := func(id string) *callable {
		i := slices.IndexFunc(all, func(c callable) bool { return c.ID == id })
		if i < 0 {
			return nil
		}
		return &all[i]
	}
	if find("event.stream") != nil || find("task.run_tail") != nil {
		t.Error("a stream is listed")
	}
	c := find("task.create")
	var body map[string]any
	if c == nil || json.Unmarshal(c.Body, &body) != nil {
		t.Fatalf("task.create: %+v", c)
	}
	if len(body) != 3 || body["repo"] != "acme/web" || !slices.Contains(c.Members, "sink") ||
		c.Method != "POST" || c.Scope != "write:tasks" {
		t.Errorf("task.create: %+v, %v", c, body)
	}
	has := func(name string) bool {
		return c != nil && slices.ContainsFunc(c.Args, func(a argument) bool { return a.Name == name && a.Doc != "" })
	}
	if c = find("task.list"); !has("cursor") || !has("q") {
		t.Errorf("task.list: %+v", c)
	}
	if c == nil || c.Body != nil || !slices.ContainsFunc(c.Args, func(a argument) bool {
		return a.Name == "filter" && a.In == "query" && a.Many && !a.Need
	}) {
		t.Errorf("task.list: %+v", c)
	}
	if _, err := callables([]byte("{")); err == nil {
		t.Error("half a document is taken")
	}
}
