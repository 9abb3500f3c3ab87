package op

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/fault"
)

type object = map[string]any

// OpenAPI renders the OpenAPI 3.1.1 document of the ops under /v1. The text is
// the same for the same ops: members are sorted.
func OpenAPI(title, description string, ops []Op) ([]byte, error) {
	d := newSchemas("#/components/schemas/")
	paths, tags := map[string]object{}, []string{}
	d.of(reflect.TypeFor[Problem]())
	for i := range ops {
		o := &ops[i]
		if !strings.HasPrefix(o.Path, "/v1/") {
			continue
		}
		p := strings.ReplaceAll(o.Path, "...}", "}")
		if paths[p] == nil {
			paths[p] = object{}
		}
		paths[p][strings.ToLower(o.Method)] = d.operation(o)
		if !slices.Contains(tags, o.Group) {
			tags = append(tags, o.Group)
		}
	}
	var tagList []object
	for _, t := range tags {
		tagList = append(tagList, object{"name": t})
	}
	doc := object{
		"openapi":    "3.1.1",
		"info":       object{"title": title, "version": "1.0.0", "description": description, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers":    []object{{"url": "/"}},
		"tags":       tagList,
		"paths":      paths,
		"components": object{"schemas": d.named, "responses": responses(), "headers": headers(), "securitySchemes": securitySchemes()},
	}
	return json.Marshal(doc, json.Deterministic(true), jsontext.WithIndent(" "))
}

func securitySchemes() object {
	return object{
		"bearer": object{"type": "http", "scheme": "bearer", "description": "A personal access token (dev_pat_…)."},
		"cookie": object{"type": "apiKey", "in": "cookie", "name": "svc_session", "description": "The browser's session; over https the name begins with __Host-."},
		"box":    object{"type": "http", "scheme": "bearer", "description": "The durable token of a box (dev_run_…)."},
	}
}

// responses are the shared failures, by status.
func responses() object {
	out := object{}
	for _, k := range fault.Kinds() {
		r := object{
			"description": k.Title() + ".",
			"content":     object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
		}
		if k == fault.RateLimited {
			r["headers"] = limitHeaders(true)
		}
		out["problem"+strconv.Itoa(k.Status())] = r
	}
	return out
}

// headers are those of answers to a credential.
func headers() object {
	h := func(doc string) object {
		return object{"description": doc, "schema": object{"type": "integer"}}
	}
	return object{
		"X-Idempotent-Replayed": object{"description": "true on an answer that an earlier call with this Idempotency-Key was given.", "schema": object{"type": "string", "enum": []string{"true"}}},
		"RateLimit-Limit":       h("What the bucket that runs out first holds: 600 reads and 600 writes a minute of a credential, 120 writes a minute of a conversation. The minute slides."),
		"RateLimit-Remaining":   h("How many of them are left."),
		"RateLimit-Reset":       h("Seconds until a slot frees."),
		"Retry-After":           h("Seconds until a slot frees, the same as RateLimit-Reset."),
	}
}

func limitHeaders(refused bool) object {
	out := object{}
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		out[name] = object{"$ref": "#/components/headers/" + name}
	}
	if refused {
		out["Retry-After"] = object{"$ref": "#/components/headers/Retry-After"}
	}
	return out
}

func (d *schemas) operation(o *Op) object {
	x := object{
		"operationId": o.ID, "summary": o.Summary, "tags": []string{o.Group},
		"x-scope": o.Rule.String(), "responses": d.results(o),
	}
	if o.Rule.IsPublic() {
		x["security"] = []object{}
	} else {
		x["security"] = []object{{"bearer": o.Rule.Names()}, {"cookie": o.Rule.Names()}}
	}
	var params []object
	body := &shape{}
	for _, f := range o.in.fields {
		switch {
		case f.where == inBody:
			body.fields = append(body.fields, f)
			continue
		case f.where == inHeader && f.name == "Authorization":
			// No parameter to OpenAPI: rows that read it authenticate a box.
			x["security"] = []object{{"box": []string{}}}
			continue
		}
		s := d.field(&f)
		if f.Tag.Get("paging") != "" {
			d.publishPaging(o.Paging, &f, s)
		}
		p := object{"name": f.name, "in": f.where.String(), "required": f.required, "schema": s}
		if s.Description != "" {
			p["description"], s.Description = s.Description, ""
		}
		params = append(params, p)
	}
	if o.keyed() {
		params = append(params, object{"name": keyHeader, "in": "header", "required": false,
			"description": "Runs the call once: a retry with the same key, credential and body is answered what the first was, for 24 hours.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}})
	}
	if params != nil {
		x["parameters"] = params
	}
	if o.in.body {
		s := d.object(body)
		s.Required = nil
		if o.raw {
			s.AdditionalProperties = &jsonschema.Schema{}
		}
		for _, f := range body.fields {
			if f.required { // unlike an answer's, a request's pointer may be left out
				s.Required = append(s.Required, f.name)
			}
		}
		x["requestBody"] = object{"required": o.in.need, "content": object{"application/json": object{"schema": s}}}
	}
	return x
}

func (d *schemas) publishPaging(g *Paging, f *field, s *jsonschema.Schema) {
	switch f.name {
	case "per_page", "limit":
		m, n := float64(g.Max), strconv.Itoa(g.Default)
		s.Maximum, s.Default = &m, []byte(n)
	case "sort":
		for _, v := range g.Sorts {
			s.Enum = append(s.Enum, v)
		}
	case "filter":
		var known []string
		for k, vals := range g.Filters {
			if len(vals) == 0 {
				known = append(known, k+":<value>")
			}
			for _, v := range vals {
				known = append(known, k+":"+v)
			}
		}
		slices.Sort(known)
		s.Description = "key:value, of " + strings.Join(known, ", ")
	}
}

func (d *schemas) results(o *Op) object {
	ok := object{"description": "Done."}
	switch {
	case o.stream != nil:
		ok["content"] = object{"text/event-stream": object{"schema": object{"type": "string"}}}
	case o.output == replyType, o.Status >= 400:
	default:
		ok["content"] = object{"application/json": object{"schema": d.of(o.output)}}
	}
	out := object{}
	for _, s := range append([]int{o.Status}, o.Also...) {
		if s >= 400 {
			continue // a row that only refuses
		}
		out[strconv.Itoa(s)] = ok
	}
	fail := func(status int) {
		out[strconv.Itoa(status)] = object{"$ref": fmt.Sprintf("#/components/responses/problem%d", status)}
	}
	fail(400)
	fail(500)
	if !o.Rule.IsPublic() {
		fail(401)
		fail(403)
		h := limitHeaders(false)
		if o.keyed() {
			h["X-Idempotent-Replayed"] = object{"$ref": "#/components/headers/X-Idempotent-Replayed"}
		}
		ok["headers"] = h
	}
	if !o.Rule.IsPublic() || o.PerAddress > 0 {
		fail(429)
	}
	if strings.Contains(o.Path, "{") {
		fail(404)
	}
	if o.in.body {
		fail(413)
		fail(415)
	}
	slugs := map[int][]string{}
	if o.keyed() {
		slugs[409] = []string{"idempotency-conflict", "idempotency-in-flight"}
	}
	for _, r := range o.Refuses {
		slugs[r.Status] = append(slugs[r.Status], r.Slug)
	}
	for status, list := range slugs {
		out[strconv.Itoa(status)] = object{
			"description": "Refused: " + strings.Join(list, ", ") + ".",
			"content":     object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
		}
	}
	return out
}
