package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/policy"
)

type renameIn struct {
	ID     string            `json:"id" format:"uuid"`
	Name   *string           `json:"name" required:"true" doc:"null clears it"`
	Note   *string           `json:"note"`
	Labels map[string]string `json:"labels,omitempty" maxItems:"3" maxLength:"9"`
}

type renamed struct {
	_    struct{}   `schema:"renamed"`
	Name *string    `json:"name"`
	At   time.Time  `json:"at"`
	Gone *time.Time `json:"gone,omitempty"`
}

func TestOpenAPI(t *testing.T) {
	ops := []op.Op{
		op.New(op.Row{ID: "item.rename", Method: "PATCH", Path: "/v1/items/{id}", Group: "Items", Rule: policy.Public(), Summary: "Rename",
			Holder: &op.Holder{Scheme: "robot", Doc: "A robot's token."}},
			func(context.Context, renameIn) (renamed, error) { return renamed{}, nil }),
		op.New(op.Row{ID: "item.list", Method: "GET", Path: "/v1/items", Group: "Items", Rule: policy.Require(policy.ReadTasks),
			Summary: "List",
			Paging:  &op.Paging{Default: 2, Max: 3}, Refuses: []op.Refusal{{Status: 409, Slug: "busy"}}},
			func(context.Context, struct{ op.PageIn }) (op.Page[renamed], error) {
				return op.Page[renamed]{}, nil
			}),
		op.Stream(op.Row{ID: "item.tail", Method: "GET", Path: "/v1/items/tail", Group: "Items", Rule: policy.Require(policy.ReadTasks),
			Summary: "Follow",
			Resume:  true, Events: []op.Event{{Name: "row", Data: renamed{}, ID: true, Doc: "One."},
				{Name: "end", Data: renamed{}, ID: true, Doc: "All."}}},
			func(context.Context, op.None, *op.Sink) error { return nil }),
		op.New(op.Row{ID: "item.page", Method: "GET", Path: "/items", Group: "Pages", Rule: policy.Public(), Summary: "Not of the API"},
			func(context.Context, op.None) (op.Reply, error) { return op.Reply{}, nil }),
	}
	about := openapi.About{Title: "T", Description: "D", Groups: map[string]string{"item": "Things."}, Version: "7.1",
		Credentials: []openapi.Credential{
			{Name: "bearer", Doc: "A token."}, {Name: "cookie", Cookie: "session"}, {Name: "oauth", Authorize: "/authorize"},
		},
		Samples: openapi.Samples{Formats: map[string]string{"uuid": "0199d3a4-5b6c-7d8e-9f01-23456789abcd"}},
		Meaning: func(slug string) string {
			if slug == "busy" {
				return "Somebody is at it."
			}
			return ""
		}}
	b, err := openapi.Render(about, ops)
	if err != nil {
		t.Fatal(err)
	}
	again, err := openapi.Render(about, ops)
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("the text changes from one rendering to the next (%v)", err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	const rename, list, tail, page = "/v1/items/{id}", "/v1/items", "/v1/items/tail", "renamedPage"
	for _, c := range []struct {
		at   []any
		want string
	}{
		{[]any{"paths", "/items"}, `null`},
		{[]any{"tags"}, `[{"description":"Things.","name":"item"}]`},
		{[]any{"x-tagGroups"}, `[{"name":"Items","tags":["item"]}]`},
		{[]any{"info", "version"}, `"1.0.0"`},
		{[]any{"info", "x-server-version"}, `"7.1"`},
		{[]any{"components", "securitySchemes", "robot"}, `{"description":"A robot's token.","scheme":"bearer","type":"http"}`},
		{[]any{"paths", rename, "patch", "security"}, `[{"robot":[]}]`},
		{[]any{"paths", rename, "patch", "parameters", 0, "schema", "format"}, `"uuid"`},
		{[]any{"paths", rename, "patch", "requestBody", "content", "application/json", "schema"},
			`{"$ref":"#/components/schemas/ItemRenameInput"}`},
		{[]any{"components", "schemas", "ItemRenameInput", "properties", "labels"},
			`{"additionalProperties":{"maxLength":9,"type":"string"},"maxProperties":3,"type":"object"}`},
		{[]any{"paths", rename, "patch", "responses", "401"}, `{"$ref":"#/components/responses/Unauthenticated"}`},
		{[]any{"components", "responses", "Unauthenticated", "content", "application/problem+json", "examples", "unauthenticated"},
			`{"$ref":"#/components/examples/unauthenticated"}`},
		{[]any{"components", "examples", "unauthenticated", "value", "status"}, `401`},
		{[]any{"paths", rename, "patch", "parameters", 0, "name"}, `"id"`},
		{[]any{"paths", rename, "patch", "parameters", 1}, `{"$ref":"#/components/parameters/Idempotency-Key"}`},
		{[]any{"components", "schemas", "ItemRenameInput", "required"}, `["name"]`},
		{[]any{"components", "schemas", "renamed", "required"}, `["name","at"]`},
		{[]any{"components", "schemas", "renamed", "properties", "name", "type"}, `["string","null"]`},
		{[]any{"components", "schemas", "renamed", "properties", "gone", "type"}, `"string"`},
		{[]any{"paths", list, "get", "security"}, `[{"bearer":[]},{"cookie":[]},{"oauth":["read:tasks"]}]`},
		{[]any{"paths", list, "get", "parameters", 1, "schema"}, `{"default":2,"format":"int64","maximum":3,"minimum":1,"type":"integer"}`},
		{[]any{"paths", list, "get", "responses", "200", "content", "application/json", "schema"}, `{"$ref":"#/components/schemas/` + page +
			`"}`},
		{[]any{"components", "responses", "Conflict.busy", "description"},
			"\"Conflicts with the current state. `busy`: Somebody is at it.\""},
		{[]any{"components", "examples", "busy", "value", "reason"}, `"busy"`},
		{[]any{"components", "responses", "Forbidden.missing-scope.not-a-member.sso-session", "content", "application/problem+json",
			"examples", "missing-scope", "$ref"}, `"#/components/examples/missing-scope"`},
		{[]any{"components", "examples", "missing-scope", "value", "missing_scopes"}, `["read:tasks"]`},
		{[]any{"paths", tail, "get", "responses", "200", "content", "text/event-stream", "schema", "contentSchema", "items", "oneOf", 0,
			"properties", "data", "contentSchema", "$ref"},
			`"#/components/schemas/renamed"`},
		{[]any{"paths", tail, "get", "responses", "200", "content", "text/event-stream", "schema", "contentSchema", "items", "oneOf", 2,
			"title"}, `"error"`},
		{[]any{"paths", tail, "get", "responses", "204", "content"}, `null`},
		{[]any{"components", "parameters", "Last-Event-ID", "in"}, `"header"`},
		{[]any{"components", "schemas", "Problem", "properties", "request_id", "type"}, `"string"`},
	} {
		got, err := json.Marshal(walk(doc, c.at))
		if err != nil || string(got) != c.want {
			t.Errorf("%v is %s, want %s (%v)", c.at, got, c.want, err)
		}
	}
}

// walk goes down a JSON value; nil if the way ends early.
func walk(v any, path []any) any {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			name, _ := step.(string)
			v = at[name]
		case []any:
			i, _ := step.(int)
			if v = nil; i < len(at) {
				v = at[i]
			}
		default:
			return nil
		}
	}
	return v
}
