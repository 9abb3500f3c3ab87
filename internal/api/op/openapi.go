package op

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/policy"
)

type object = map[string]any

// About is what the document says beside its operations.
type About struct {
	Title, Description string
	Groups             map[string]string // what a group of capabilities is about, by the prefix of their ids
	// Order is the groups as a reader should meet them; those that it lacks come last.
	Order []string
	// Version is that of the program, where it has one. The document's own is
	// of the contract.
	Version string
	// Meaning explains a slug in a sentence or two; "" where there is no more
	// to it than its status.
	Meaning func(slug string) string
}

// OpenAPI renders the OpenAPI 3.1.1 document of the ops under /v1. The text is
// the same for the same ops: members are sorted.
func OpenAPI(about About, ops []Op) ([]byte, error) {
	d := newSchemas("#/components/schemas/")
	d.meaning = about.Meaning
	paths, schemes := map[string]object{}, securitySchemes()
	var tags, headings []string
	under := map[string][]string{}
	d.of(reflect.TypeFor[Problem]())
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
		if t := o.Tag(); !slices.Contains(tags, t) {
			tags = append(tags, t)
			if under[o.Group] == nil {
				headings = append(headings, o.Group)
			}
			under[o.Group] = append(under[o.Group], t)
		}
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
		"contact": object{"name": "Who runs this server"},
		"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}}
	if about.Version != "" {
		info["x-server-version"] = about.Version
	}
	doc := object{
		"openapi":     "3.1.1",
		"info":        info,
		"servers":     []object{{"url": "/", "description": "The server this document came from."}},
		"tags":        tagList,
		"x-tagGroups": groups,
		"paths":       paths,
		"components": object{
			"schemas": d.named, "headers": headers(), "securitySchemes": schemes,
			"parameters": object{"X-Request-Id": object{"name": "X-Request-Id", "in": "header", "required": false,
				"description": "Adopted as the id of the request when it is printable ASCII of at most 200 characters; otherwise one is made.",
				"schema":      object{"type": "string"}}},
		},
	}
	return json.Marshal(doc, json.Deterministic(true), jsontext.WithIndent(" "))
}

// Tag is the group that the op's id begins with.
func (o *Op) Tag() string {
	tag, _, _ := strings.Cut(o.ID, ".")
	return tag
}

func securitySchemes() object {
	scopes := object{}
	for _, s := range policy.Vocabulary() {
		scopes[string(s)] = "The right " + string(s) + "."
	}
	return object{
		"bearer": object{"type": "http", "scheme": "bearer", "description": "A personal access token (dev_pat_…)."},
		"cookie": object{"type": "apiKey", "in": "cookie", "name": "svc_session",
			"description": "The browser's session; over https the name begins with __Host-. The header X-Svc-Account, with an account's id or login, says which account the call is about."},
		"oauth": object{"type": "oauth2", "description": "How a program gets a personal access token with its user's consent: OAuth 2.1 with PKCE (S256).",
			"flows": object{"authorizationCode": object{"authorizationUrl": "/oauth/authorize", "tokenUrl": "/oauth/token", "scopes": scopes}}},
	}
}

func headers() object {
	h := func(kind, doc string) object {
		return object{"description": doc, "schema": object{"type": kind}}
	}
	return object{
		"X-Request-Id":          h("string", "The id of the request: the caller's, if it sent a usable one."),
		"X-Idempotent-Replayed": object{"description": "true on an answer that an earlier call with this Idempotency-Key was given.", "schema": object{"type": "string", "enum": []string{"true"}}},
		"RateLimit-Limit":       h("integer", "What the bucket that runs out first holds: 600 reads and 600 writes a minute of a credential, 120 writes a minute of a conversation, 1200 requests a minute of an address. The minute slides."),
		"RateLimit-Remaining":   h("integer", "How many of them are left."),
		"RateLimit-Reset":       h("integer", "Seconds until a slot frees."),
		"Retry-After":           h("integer", "Seconds until a slot frees, the same as RateLimit-Reset."),
		"WWW-Authenticate":      h("string", "The challenge, which may name the document that describes the resource (RFC 9728)."),
		"Allow":                 h("string", "The methods that the path takes."),
		"ETag":                  h("string", "Names this very text of the answer; If-None-Match takes it."),
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

func (d *schemas) operation(o *Op) object {
	x := object{
		"operationId": o.ID, "summary": o.Summary, "description": o.explain(), "tags": []string{o.Tag()},
		"x-scope": o.Rule.String(), "responses": d.results(o),
	}
	switch {
	case o.Holder != nil:
		x["security"] = []object{{o.Holder.Scheme: []string{}}}
	case o.Rule.IsPublic():
		x["security"] = []object{}
	default:
		x["security"] = []object{{"bearer": []string{}}, {"cookie": []string{}}, {"oauth": o.Rule.Names()}}
	}
	var params []object
	body := &shape{}
	for _, f := range o.in.fields {
		where := f.where
		if where == inBody {
			body.fields = append(body.fields, f)
			if !f.also {
				continue
			}
			where = inQuery
		}
		s := d.field(&f)
		if f.Tag.Get("paging") != "" {
			d.publishPaging(o.Paging, &f, s)
		}
		p := object{"name": f.name, "in": where.String(), "required": f.required, "schema": s}
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
	if o.Resume {
		params = append(params, object{"name": "Last-Event-ID", "in": "header", "required": false,
			"description": "The id of the last frame that came; the stream goes on after it. A browser's EventSource sends it by itself.",
			"schema":      object{"type": "string", "pattern": "^[0-9]+$"}})
	}
	if params != nil {
		x["parameters"] = params
	}
	if o.in.body {
		s := d.object(body)
		s.Required = nil
		if o.raw {
			s = d.of(reflect.TypeOf(o.Takes))
		}
		for _, f := range body.fields {
			if f.required { // unlike an answer's, a request's pointer may be left out
				s.Required = append(s.Required, f.name)
			}
		}
		m := object{"schema": s}
		if v, ok := d.sample("", s, nil); ok {
			m["example"] = v
		}
		x["requestBody"] = object{"required": o.in.need, "content": object{"application/json": m}}
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
