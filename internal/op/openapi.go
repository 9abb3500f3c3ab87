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
	"yardmaster/internal/policy"
)

type object = map[string]any

// About is what the document says beside its operations.
type About struct {
	Title, Description string
	Groups             map[string]string // what a group of capabilities is about
}

// OpenAPI renders the OpenAPI 3.1.1 document of the ops under /v1. The text is
// the same for the same ops: members are sorted.
func OpenAPI(about About, ops []Op) ([]byte, error) {
	d := newSchemas("#/components/schemas/")
	paths, tags := map[string]object{}, []string{}
	d.of(reflect.TypeFor[Problem]())
	failures := map[int]bool{}
	for i := range ops {
		o := &ops[i]
		if !strings.HasPrefix(o.Path, "/v1/") {
			continue
		}
		p := strings.ReplaceAll(o.Path, "...}", "}")
		if paths[p] == nil {
			paths[p] = object{"parameters": []object{{"$ref": "#/components/parameters/X-Request-Id"}}}
		}
		paths[p][strings.ToLower(o.Method)] = d.operation(o, failures)
		if !slices.Contains(tags, o.Group) {
			tags = append(tags, o.Group)
		}
	}
	var tagList []object
	for _, t := range tags {
		tagList = append(tagList, object{"name": t, "description": about.Groups[t]})
	}
	doc := object{
		"openapi": "3.1.1",
		"info": object{"title": about.Title, "version": "1.0.0", "description": about.Description,
			"contact": object{"name": "Who runs this server"},
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers": []object{{"url": "/", "description": "The server this document came from."}},
		"tags":    tagList,
		"paths":   paths,
		"components": object{
			"schemas": d.named, "responses": responses(failures), "headers": headers(), "securitySchemes": securitySchemes(),
			"parameters": object{"X-Request-Id": object{"name": "X-Request-Id", "in": "header", "required": false,
				"description": "Adopted as the id of the request when it is printable ASCII of at most 200 characters; otherwise one is made.",
				"schema":      object{"type": "string"}}},
		},
	}
	return json.Marshal(doc, json.Deterministic(true), jsontext.WithIndent(" "))
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
		"box": object{"type": "http", "scheme": "bearer", "description": "The durable token of a box (dev_run_…)."},
	}
}

// responses are the shared failures, by status.
func responses(used map[int]bool) object {
	out := object{}
	for _, k := range fault.Kinds() {
		if used[k.Status()] {
			out["problem"+strconv.Itoa(k.Status())] = refusal(k.Title()+".", k, k.Slug())
		}
	}
	return out
}

// refusal is a response that is a problem.
func refusal(doc string, k fault.Kind, slug string) object {
	h := object{"X-Request-Id": headerRef("X-Request-Id")}
	sample := object{
		"type": "https://yardmaster.example/problems/" + slug, "title": k.Title(), "status": k.Status(), "detail": k.Title() + ".",
		"instance": "/v1/me", "request_id": sampleID,
	}
	switch k {
	case fault.Invalid:
		sample["detail"], sample["errors"] = "The request has invalid fields.", object{"title": []string{"is required"}}
	case fault.RateLimited:
		sample["retry_after"] = 7
		for name, ref := range limitHeaders() {
			h[name] = ref
		}
		h["Retry-After"] = headerRef("Retry-After")
	case fault.Unauthenticated:
		h["WWW-Authenticate"] = headerRef("WWW-Authenticate")
	case fault.MethodNotAllowed:
		h["Allow"] = headerRef("Allow")
	case fault.Conflict:
		sample["reason"] = slug
	}
	return object{
		"description": doc, "headers": h,
		"content": object{problemType: object{"schema": object{"$ref": "#/components/schemas/Problem"}, "example": sample}},
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

func (d *schemas) operation(o *Op, failures map[int]bool) object {
	x := object{
		"operationId": o.ID, "summary": o.Summary, "description": o.explain(), "tags": []string{o.Group},
		"x-scope": o.Rule.String(), "responses": d.results(o, failures),
	}
	if o.Rule.IsPublic() {
		x["security"] = []object{}
	} else {
		x["security"] = []object{{"bearer": []string{}}, {"cookie": []string{}}, {"oauth": o.Rule.Names()}}
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
		m := object{"schema": s}
		if v, ok := d.sample("", s, nil); ok && !o.raw {
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

// explain says in words what the row says in its fields.
func (o *Op) explain() string {
	var says []string
	say := func(format string, a ...any) { says = append(says, fmt.Sprintf(format, a...)) }
	switch names := o.Rule.Names(); {
	case o.Rule.IsPublic():
		say("Needs no credential.")
	case len(names) == 0:
		say("Needs a credential, and no scope of it.")
	default:
		say("Needs the scope %s.", strings.Join(names, " and "))
	}
	if o.keyed() {
		say("Takes an Idempotency-Key.")
	}
	if o.NoStore {
		say("The answer is not kept: an Idempotency-Key is ignored.")
	}
	switch g := o.Paging; {
	case g == nil:
	case g.Full:
		say("The list is always whole.")
	case g.Bounded:
		say("limit is %d unless sent, and at most %d; has_more tells that there are more.", g.Default, g.Max)
	default:
		say("A page has %d rows unless per_page is sent, and at most %d.", g.Default, g.Max)
	}
	switch {
	case o.stream != nil && o.Resume:
		say("Server-sent events; Last-Event-ID takes up where a connection broke off.")
	case o.stream != nil:
		say("Server-sent events; Last-Event-ID is refused.")
	}
	if o.PerAddress > 0 {
		say("An address may call it %d times a minute.", o.PerAddress)
	}
	if o.in.body && o.MaxBody != 1<<20 {
		say("The body may have %d bytes.", o.MaxBody)
	}
	return strings.Join(says, " ")
}

// done describes a success.
func done(status int) string {
	switch status {
	case 201:
		return "Made."
	case 202:
		return "Accepted; what follows happens later."
	case 304:
		return "What the caller has is still the answer."
	}
	return "Done."
}

func (d *schemas) results(o *Op, failures map[int]bool) object {
	h := object{"X-Request-Id": headerRef("X-Request-Id")}
	var content object
	switch {
	case o.stream != nil:
		content = object{"text/event-stream": object{"schema": object{"type": "string"}}}
	case o.output == assetType:
		content = object{"application/json": object{"schema": object{"type": "object", "additionalProperties": true}}}
		h["ETag"] = headerRef("ETag")
	case o.output == replyType, o.Status >= 400:
	default:
		s := d.of(o.output)
		m := object{"schema": s}
		if v, ok := d.sample("", s, nil); ok {
			m["example"] = v
		}
		content = object{"application/json": m}
	}
	if !o.Rule.IsPublic() {
		for name, ref := range limitHeaders() {
			h[name] = ref
		}
		if o.keyed() {
			h["X-Idempotent-Replayed"] = headerRef("X-Idempotent-Replayed")
		}
	}
	out := object{}
	for _, s := range append([]int{o.Status}, o.Also...) {
		ok := object{"description": done(s), "headers": h}
		if content != nil && s != 304 {
			ok["content"] = content
		}
		if s < 400 { // there are rows that only refuse
			out[strconv.Itoa(s)] = ok
		}
	}
	slugs := map[int][]string{}
	if o.keyed() {
		slugs[409] = []string{"idempotency-conflict", "idempotency-in-flight"}
	}
	for _, r := range o.Refuses {
		slugs[r.Status] = append(slugs[r.Status], r.Slug)
	}
	kinds := map[int]fault.Kind{}
	for _, k := range fault.Kinds() {
		kinds[k.Status()] = k
	}
	for status, list := range slugs {
		out[strconv.Itoa(status)] = refusal("Refused: "+strings.Join(list, ", ")+".", kinds[status], list[0])
	}
	for _, status := range o.mayFail() {
		if slugs[status] == nil {
			failures[status] = true
			out[strconv.Itoa(status)] = object{"$ref": fmt.Sprintf("#/components/responses/problem%d", status)}
		}
	}
	return out
}

// mayFail lists the statuses of failures that follow from what the row is.
func (o *Op) mayFail() []int {
	out := []int{400, 429, 500, 503}
	if !o.Rule.IsPublic() {
		out = append(out, 401, 403)
	}
	if strings.Contains(o.Path, "{") {
		out = append(out, 404)
	}
	if o.in.body {
		out = append(out, 413, 415)
	}
	return out
}
