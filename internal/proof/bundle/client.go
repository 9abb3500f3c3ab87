package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// schema is a JSON Schema of the document.
type schema map[string]any

// parameter is a parameter of an operation.
type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	Required bool
	Schema   schema
}

type content map[string]struct{ Schema schema }

// operation is an operation of the document.
type operation struct {
	OperationID string
	Scope       string `json:"x-scope"`
	Parameters  []parameter
	RequestBody struct{ Content content }
	Responses   map[string]struct{ Content content }
}

// offered are the lists of values that pages let people choose from, each from a member of a
// schema.
var offered = []struct{ name, schema, member string }{
	{"providers", "BillingKey", "provider"},
	{"notificationKinds", "Notification", "kind"},
	{"webhookEvents", "WebhookAttempt", "type"},
}

// generate returns the client of an OpenAPI document: a type for each schema, and a
// constant for each operation, so that those which no page uses fall out of the
// bundle.
func generate(document []byte) ([]byte, error) {
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas    map[string]schema
			Parameters map[string]parameter
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("// Generated from docs/openapi.json by internal/proof/bundle. Do not edit.\nimport { op, tail } from \"./api\";\n\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		fmt.Fprintf(&b, "export type %s = %s;\n", identifier(name), typeOf(doc.Components.Schemas[name]))
	}
	b.WriteString("\n")
	for _, o := range offered {
		member, _ := doc.Components.Schemas[o.schema]["properties"].(map[string]any)[o.member].(map[string]any)
		values, _ := member["enum"].([]any)
		if len(values) == 0 {
			return nil, fmt.Errorf("%s.%s has no values for %s", o.schema, o.member, o.name)
		}
		fmt.Fprintf(&b, "export const %s = [%s] as const;\n", o.name, literals(values, ", "))
	}
	b.WriteString("\n")
	var rows []string
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			if !slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				continue
			}
			var o operation
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			for i, p := range o.Parameters {
				if p.Ref != "" {
					o.Parameters[i] = doc.Components.Parameters[filepath.Base(p.Ref)]
				}
			}
			rows = append(rows, o.constant(strings.ToUpper(method), path))
		}
	}
	slices.Sort(rows)
	b.WriteString(strings.Join(rows, ""))
	return []byte(b.String()), nil
}

// constant declares the operation in TypeScript.
func (o operation) constant(method, path string) string {
	var in, query []string
	for _, p := range o.Parameters {
		switch p.In {
		case "query":
			query = append(query, fmt.Sprintf("%q", p.Name))
		case "path":
		default:
			continue
		}
		mark := "?"
		if p.Required || p.In == "path" {
			mark = ""
		}
		in = append(in, fmt.Sprintf("%q%s: %s", p.Name, mark, typeOf(p.Schema)))
	}
	input := "{ " + strings.Join(in, "; ") + " }"
	if body, ok := o.RequestBody.Content["application/json"]; ok {
		input += " & " + typeOf(body.Schema)
	}
	name := camel(o.OperationID)
	if _, ok := o.Responses["200"].Content["text/event-stream"]; ok {
		return fmt.Sprintf("export const %s = /* @__PURE__ */ tail<%s>(%q);\n", name, input, path)
	}
	output := "unknown"
	for _, status := range []string{"200", "201", "202"} {
		if c, ok := o.Responses[status].Content["application/json"]; ok {
			output = typeOf(c.Schema)
			break
		}
	}
	names := "" // what of the input of a GET is in no path is in the query
	if method != "GET" && len(query) > 0 {
		names = ", [" + strings.Join(query, ", ") + "]"
	}
	return fmt.Sprintf("export const %s = /* @__PURE__ */ op<%s, %s>(%q, %q, %q, %q%s);\n",
		name, input, output, o.OperationID, method, path, o.Scope, names)
}

// typeOf is a schema as a type of TypeScript.
func typeOf(s schema) string {
	if ref, ok := s["$ref"].(string); ok {
		return identifier(ref[strings.LastIndex(ref, "/")+1:])
	}
	if values, ok := s["enum"].([]any); ok {
		return literals(values, " | ")
	}
	if value, ok := s["const"]; ok {
		return literals([]any{value}, "")
	}
	for key, between := range map[string]string{"anyOf": " | ", "oneOf": " | ", "allOf": " & "} {
		if list, ok := s[key].([]any); ok {
			return "(" + strings.Join(typesOf(list), between) + ")"
		}
	}
	switch kind := s["type"].(type) {
	case []any:
		var out []string
		for _, one := range kind {
			only := maps.Clone(s)
			only["type"] = one
			out = append(out, typeOf(only))
		}
		return "(" + strings.Join(out, " | ") + ")"
	case string:
		return simple(kind, s)
	}
	return "unknown"
}

func simple(kind string, s schema) string {
	switch kind {
	case "integer", "number":
		return "number"
	case "array":
		if items, ok := s["items"].(map[string]any); ok {
			return "(" + typeOf(items) + ")[]"
		}
		return "unknown[]"
	case "object":
		return object(s)
	}
	return kind // string, boolean, null
}

func object(s schema) string {
	properties, _ := s["properties"].(map[string]any)
	if len(properties) == 0 {
		if more, ok := s["additionalProperties"].(map[string]any); ok {
			return "Record<string, " + typeOf(more) + ">"
		}
		return "Record<string, unknown>"
	}
	required, _ := s["required"].([]any)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		mark := "?"
		if slices.Contains(required, any(name)) {
			mark = ""
		}
		one, _ := properties[name].(map[string]any)
		out = append(out, fmt.Sprintf("%q%s: %s", name, mark, typeOf(one)))
	}
	return "{ " + strings.Join(out, "; ") + " }"
}

func typesOf(list []any) (out []string) {
	for _, v := range list {
		one, _ := v.(map[string]any)
		out = append(out, typeOf(one))
	}
	return out
}

func literals(values []any, between string) string {
	var out []string
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return "unknown"
		}
		out = append(out, string(text))
	}
	return strings.Join(out, between)
}

// identifier is the name of a schema as TypeScript takes it.
func identifier(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

// camel is the id of an operation as a name: task.run_status is taskRunStatus.
func camel(id string) string {
	parts := strings.FieldsFunc(id, func(r rune) bool { return r == '.' || r == '_' })
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}
