// Package openapi writes the OpenAPI document of ops: an operation for each row
// under /v1, a schema for each named type, the possible failures, and an example of
// everything. All that the document says about the product (its credentials, its
// groups, the meaning of failures, the material for examples) is passed as data, in
// an About. For a single op it makes the schemas of its inputs and its answer, for
// surfaces that describe themselves.
package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
	"yardmaster/internal/policy"
)

type object = map[string]any

// About is the part of the document that does not come from the operations.
type About struct {
	Title, Description string
	Contact            string            // name of the operator of the server
	License            string            // SPDX identifier
	Groups             map[string]string // description of each group of capabilities, by the prefix of their ids
	// Order lists the groups in the order for readers; groups that it lacks come
	// last.
	Order []string
	// Version is the version of the program, if it has one. The document's own
	// version is that of the contract.
	Version string
	// Meaning explains a slug in a sentence or two; "" if the status says
	// everything.
	Meaning func(slug string) string
	// Credentials are the kinds of credentials, in the order in which an operation
	// lists them.
	Credentials []Credential
	// FixLink describes fix links, for rows whose rule takes them.
	FixLink string
	// Known are the values of fields that may have further ones, by the names in
	// their tags known.
	Known   map[string][]string
	Samples Samples
	Hooks   Hooks
}

// Credential is a security scheme of the document.
type Credential struct {
	Name, Doc string
	// Cookie is the name of the cookie; "" means a bearer token.
	Cookie string
	// Authorize and Token are the OAuth 2.1 addresses from which programs get a
	// token with the scopes of the operation.
	Authorize, Token string
}

func (c Credential) scheme() object {
	switch {
	case c.Cookie != "":
		return object{"type": "apiKey", "in": "cookie", "name": c.Cookie, "description": c.Doc}
	case c.Authorize != "":
		scopes := object{}
		for _, s := range policy.Vocabulary() {
			scopes[string(s)] = "Lets its holder " + s.Words() + "."
		}
		flow := object{"authorizationUrl": c.Authorize, "tokenUrl": c.Token, "scopes": scopes}
		return object{"type": "oauth2", "description": c.Doc, "flows": object{"authorizationCode": flow}}
	}
	return object{"type": "http", "scheme": "bearer", "description": c.Doc}
}

// Render writes the OpenAPI 3.1.1 document of the ops under /v1. The same ops give
// the same text: members are sorted.
func Render(about About, ops []op.Op) ([]byte, error) {
	d := newSchemas("#/components/schemas/", &about)
	paths, schemes := map[string]object{}, object{}
	for _, c := range about.Credentials {
		schemes[c.Name] = c.scheme()
	}
	var tags, headings []string
	under := map[string][]string{}
	d.of(reflect.TypeFor[op.Problem]())
	d.shared = shared{responses: object{}, examples: object{}, parameters: object{"X-Request-Id": object{
		"name": "X-Request-Id", "in": "header", "required": false, "description": "Adopted as the id of the request when it is printable ASCII of at most 200 characters; " +
			"otherwise one is made.",
		"schema": object{"type": "string"}}}}
	for i := range ops {
		o := &ops[i]
		if !strings.HasPrefix(o.Path, "/v1/") {
			continue
		}
		p := strings.ReplaceAll(o.Path, "...}", "}")
		if paths[p] == nil {
			paths[p] = object{"parameters": []object{{"$ref": "#/components/parameters/X-Request-Id"}}}
		}
		paths[p][strings.ToLower(o.Method)] = d.operation(o)
		if o.Holder != nil {
			schemes[o.Holder.Scheme] = object{"type": "http", "scheme": "bearer", "description": o.Holder.Doc}
		}
		if t := tagOf(o); !slices.Contains(tags, t) {
			tags = append(tags, t)
			if under[o.Group] == nil {
				headings = append(headings, o.Group)
			}
			under[o.Group] = append(under[o.Group], t)
		}
	}
	if err := d.gather(paths); err != nil {
		return nil, err
	}
	place := func(tag string) int {
		if i := slices.Index(about.Order, tag); i >= 0 {
			return i
		}
		return len(about.Order)
	}
	slices.SortStableFunc(tags, func(a, b string) int { return place(a) - place(b) })
	tagList, groups := []object{}, []object{}
	for _, t := range tags {
		tagList = append(tagList, object{"name": t, "description": about.Groups[t]})
	}
	for _, h := range headings {
		groups = append(groups, object{"name": h, "tags": under[h]})
	}
	info := object{"title": about.Title, "version": "1.0.0", "description": about.Description,
		"contact": object{"name": about.Contact},
		"license": object{"name": about.License, "identifier": about.License}}
	if about.Version != "" {
		info["x-server-version"] = about.Version
	}
	webhooks := d.webhooks(&about.Hooks)
	doc := object{
		"openapi":     "3.1.1",
		"info":        info,
		"servers":     []object{{"url": "/", "description": "The server this document came from."}},
		"tags":        tagList,
		"x-tagGroups": groups,
		"paths":       paths,
		"webhooks":    webhooks,
		"components": object{
			"schemas": d.named, "headers": headers(), "securitySchemes": schemes,
			"responses": d.shared.responses, "parameters": d.shared.parameters, "examples": d.shared.examples,
		},
	}
	text, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return layout(nil, text, 0, 0)
}

func headers() object {
	h := func(kind, doc string) object {
		s := object{"type": kind}
		if kind == "integer" {
			s["format"] = "int64"
		}
		return object{"description": doc, "schema": s}
	}
	return object{
		"X-Request-Id": h("string", "The id of the request: the caller's, if it sent a usable one."),
		"X-Idempotent-Replayed": object{
			"description": "true on an answer that an earlier call with this Idempotency-Key was given.",
			"schema":      object{"type": "string", "enum": []string{"true"}},
		},
		"RateLimit-Limit": h("integer", fmt.Sprintf("What the bucket that runs out first holds: "+
			"%d reads and %d writes a minute of a credential, "+
			"%d writes a minute of a conversation, %d requests a minute of an address. The minute slides.",
			op.ReadsPerCredential, op.WritesPerCredential, op.WritesPerConversation, op.PerAddress)),
		"RateLimit-Remaining": h("integer", "How many of them are left."),
		"RateLimit-Reset":     h("integer", "Seconds until a slot frees."),
		"Retry-After":         h("integer", "Seconds until it is worth trying again."),
		"WWW-Authenticate":    h("string", "The challenge, which may name the document that describes the resource (RFC 9728)."),
		"Allow":               h("string", "The methods that the path takes."),
		"ETag":                h("string", "Names this very text of the answer; If-None-Match takes it."),
	}
}

func headerRef(name string) object { return object{"$ref": "#/components/headers/" + name} }

func limitHeaders() object {
	out := object{}
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		out[name] = headerRef(name)
	}
	return out
}

func (d *schemas) operation(o *op.Op) object {
	x := object{
		"operationId": o.ID, "summary": o.Summary, "description": d.explain(o), "tags": []string{tagOf(o)},
		"x-scope": o.Rule.String(), "responses": d.results(o),
	}
	switch {
	case o.Holder != nil:
		x["security"] = []object{{o.Holder.Scheme: []string{}}}
	case o.Rule.IsPublic():
		x["security"] = []object{}
	default:
		x["security"] = d.security(o)
	}
	var params []object
	body := &op.Shape{}
	for _, f := range o.Shape().Fields {
		where := f.Where
		if where == op.InBody {
			body.Fields = append(body.Fields, f)
			if !f.Also {
				continue
			}
			where = op.InQuery
		}
		s := d.field(&f)
		if f.Tag.Get("paging") != "" {
			d.publishPaging(o.Paging, &f, s)
		}
		p := object{"name": f.Name, "in": where.String(), "required": f.Required, "schema": s}
		if s.Description != "" {
			p["description"], s.Description = s.Description, ""
		}
		params = append(params, p)
	}
	if o.Keyed() {
		params = append(params, object{"name": op.KeyHeader, "in": "header", "required": false,
			"description": "Runs the call once: a retry with the same key, credential and body is answered what the first was, " +
				"for 24 hours.",
			"schema": object{"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}})
	}
	if o.Resume {
		params = append(params, object{"name": "Last-Event-ID", "in": "header", "required": false,
			"description": "The id of the last frame that came; the stream goes on after it. A browser's EventSource sends it by itself.",
			"schema":      object{"type": "string", "pattern": op.FrameID}})
	}
	for i, p := range params {
		params[i] = d.share(p)
	}
	if params != nil {
		x["parameters"] = params
	}
	if o.Shape().Body {
		s := d.body(o, body)
		m := object{"schema": s}
		if v, ok := d.sample("", s, nil); ok {
			m["example"] = v
		}
		x["requestBody"] = object{"required": o.Shape().Need, "content": object{"application/json": m}}
	}
	return x
}

// body names the schema of a request's body after the operation: that of task.create is
// TaskCreateInput. It panics if a type has the name.
func (d *schemas) body(o *op.Op, fields *op.Shape) *jsonschema.Schema {
	if o.IsRaw() {
		return d.of(reflect.TypeOf(o.Takes))
	}
	s := d.object(fields)
	s.Required = nil
	for _, f := range fields.Fields {
		if f.Required { // in contrast to an answer's, a request's pointer may be left out
			s.Required = append(s.Required, f.Name)
		}
	}
	s.Description = "What " + o.ID + " takes."
	return d.name(typeName(o.ID)+"Input", s)
}

// name adds a schema under a name to the document and returns a reference to it. It
// panics if another schema has the name.
func (d *schemas) name(name string, s *jsonschema.Schema) *jsonschema.Schema {
	if d.named[name] != nil {
		panic("op: two schemas want the name " + name)
	}
	d.named[name], d.types[name] = s, nil
	return &jsonschema.Schema{Ref: d.root + name}
}

func (d *schemas) publishPaging(g *op.Paging, f *op.Field, s *jsonschema.Schema) {
	switch f.Name {
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
		for _, k := range g.Several {
			s.Description += "; " + k + " takes several values, separated by commas"
		}
	}
}

// tagOf returns the group with which the op's id begins.
func tagOf(o *op.Op) string {
	tag, _, _ := strings.Cut(o.ID, ".")
	return tag
}

// security lists the credentials that an operation takes, any one of them.
func (d *schemas) security(o *op.Op) []object {
	out := make([]object, len(d.Credentials))
	for i, c := range d.Credentials {
		scopes := []string{}
		if c.Authorize != "" {
			scopes = o.Rule.Names()
		}
		out[i] = object{c.Name: scopes}
	}
	return out
}
