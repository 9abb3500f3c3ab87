package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// eventsDescription is what the document of events says of itself.
const eventsDescription = "What the audit record says of each kind of event. An audit row is valid against this schema if its kind is declared and its data is what the kind has. " +
	"Of each kind, x-topic is the topic of the stream that shows it (null: the audit trail alone), and x-scope what it takes to be told of it. " +
	"On the platform's own chain, the data of an operator's act has further members, for operators."

type schema = map[string]any

// EventsDocument is the JSON Schema of the data of all kinds of events, as it is
// kept with the sources. The text is the same for the same declarations.
func EventsDocument() ([]byte, error) {
	kinds, rows := schema{}, []any{}
	for _, k := range event.Kinds() {
		data, err := dataSchema(k)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", k.Name(), err)
		}
		data["description"], data["x-scope"], data["x-topic"] = k.Doc(), string(k.Topic().Scope), nil
		if k.Topic().Name != "" {
			data["x-topic"] = k.Topic().Name
		}
		kinds[k.Name()] = data
		rows = append(rows, schema{"properties": schema{"kind": schema{"const": k.Name()}, "data": schema{"$ref": "#/$defs/" + k.Name()}}})
	}
	return jsonv2.Marshal(schema{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "Events of Yardmaster",
		"description": eventsDescription,
		"type":        "object",
		"required":    []string{"kind", "data"},
		"oneOf":       rows,
		"$defs":       kinds,
	}, jsonv2.Deterministic(true), jsontext.WithIndent(" "))
}

// dataSchema is the schema of a kind's data, as the OpenAPI document would have
// it of an answer of that type, and without a reference to another one.
func dataSchema(k event.Any) (schema, error) {
	const path = "/v1/event"
	row := op.Row{ID: k.Name(), Method: "GET", Path: path, Rule: policy.Public(), Body: reflect.Zero(k.Data()).Interface()}
	never := func(context.Context, op.None) (op.Reply, error) { return op.Reply{}, errors.ErrUnsupported }
	text, err := openapi.Render(openapi.About{}, []op.Op{op.New(row, never)})
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths map[string]struct {
			Get struct {
				Responses map[string]struct {
					Content map[string]struct{ Schema schema }
				}
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	answer, ok := doc.Paths[path].Get.Responses["200"].Content["application/json"]
	if !ok {
		return nil, errors.New("the document of its answer has none")
	}
	out, err := inlined(answer.Schema, doc.Components.Schemas, nil)
	if err != nil {
		return nil, err
	}
	return out.(schema), nil
}

// inlined puts schemas in the place of references to them, and closes objects:
// a member that is not declared is not recorded. A list may be null. Above are the references that
// led here.
func inlined(v any, named map[string]schema, above []string) (any, error) {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = inlined(e, named, above); err != nil {
				return nil, err
			}
		}
		return out, nil
	case schema:
		out := schema{}
		if ref, ok := v["$ref"].(string); ok {
			if slices.Contains(above, ref) {
				return nil, fmt.Errorf("%s holds itself", ref)
			}
			target, ok := named[strings.TrimPrefix(ref, "#/components/schemas/")]
			if !ok {
				return nil, fmt.Errorf("there is no %s", ref)
			}
			whole, err := inlined(target, named, append(slices.Clone(above), ref))
			if err != nil {
				return nil, err
			}
			maps.Copy(out, whole.(schema))
		}
		for name, member := range v {
			if name == "$ref" {
				continue
			}
			var err error
			if out[name], err = inlined(member, named, above); err != nil {
				return nil, err
			}
		}
		if _, said := out["additionalProperties"]; !said && out["type"] == "object" {
			out["additionalProperties"] = false
		}
		required, _ := out["required"].([]any)
		for _, name := range required { // nobody fills in an empty list for the record
			if list := out["properties"].(schema)[name.(string)].(schema); list["type"] == "array" {
				list["type"] = []string{"array", "null"}
			}
		}
		return out, nil
	}
	return v, nil
}
