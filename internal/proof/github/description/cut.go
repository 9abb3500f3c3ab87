package description

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"yardmaster/internal/proof/github/description/source"
	"yardmaster/internal/proof/npm"
)

// hooks is the path under which the cut keeps the description of deliveries, which
// GitHub's document has in x-webhooks.
const hooks = "/x-webhooks/"

// edition changes when the cut of the same operations becomes another text.
const edition = "1"

// Operation names an operation of the document: "GET /repos/{owner}/{repo}".
type Operation = string

// cut returns the part of a document that describes the operations and all
// deliveries. The part is kept in the cache, because the whole takes 2 s to read.
// Operations that the document lacks are left out.
func cut(ctx context.Context, document string, operations []Operation) ([]byte, error) {
	whole, err := source.File(ctx, document)
	if err != nil {
		return nil, err
	}
	operations = slices.Sorted(slices.Values(operations))
	sum := sha256.Sum256([]byte(strings.Join(append([]string{edition, whole}, operations...), "\n")))
	at := filepath.Join(filepath.Dir(whole), "cut-"+hex.EncodeToString(sum[:8])+"-"+document)
	if text, err := os.ReadFile(at); err == nil {
		return text, nil
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		return nil, err
	}
	small, err := shorten(text, operations)
	if err != nil {
		return nil, fmt.Errorf("cut %s: %w", document, err)
	}
	return small, npm.Write(at, small)
}

type object = map[string]any

// shorten does the work of cut.
func shorten(text []byte, operations []Operation) ([]byte, error) {
	var whole struct {
		OpenAPI    string            `json:"openapi"`
		Info       json.RawMessage   `json:"info"`
		Paths      map[string]object `json:"paths"`
		Hooks      map[string]object `json:"x-webhooks"`
		Components map[string]object `json:"components"`
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	paths := map[string]object{}
	for _, o := range operations {
		method, path, _ := strings.Cut(o, " ")
		from, ok := whole.Paths[path]
		operation, has := from[strings.ToLower(method)]
		if !ok || !has {
			continue
		}
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(method)] = operation
		if shared, has := from["parameters"]; has {
			paths[path]["parameters"] = shared
		}
	}
	for name, item := range whole.Hooks {
		paths[hooks+name] = item
	}
	components := map[string]object{}
	var queue []any
	for _, item := range paths {
		queue = append(queue, item)
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		walk(next, func(ref string) {
			kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
			if _, done := components[kind][name]; done {
				return
			}
			if components[kind] == nil {
				components[kind] = object{}
			}
			components[kind][name] = whole.Components[kind][name]
			queue = append(queue, whole.Components[kind][name])
		})
	}
	return json.Marshal(object{"openapi": whole.OpenAPI, "info": whole.Info, "paths": paths, "components": components})
}

// walk drops the examples below a node and tells each reference.
func walk(node any, tell func(ref string)) {
	switch v := node.(type) {
	case []any:
		for _, e := range v {
			walk(e, tell)
		}
	case object:
		if ref, ok := v["$ref"].(string); ok {
			tell(ref)
			return
		}
		delete(v, "example")
		delete(v, "examples")
		for key, e := range v {
			// The keys of properties are names of members: one may be called example.
			if named, ok := e.(object); ok && key == "properties" {
				for _, member := range named {
					walk(member, tell)
				}
				continue
			}
			walk(e, tell)
		}
	}
}
