// Package reference renders the OpenAPI document as one page for people: every
// capability and every schema has an anchor of its own, and the page works without
// scripts and loads nothing.
package reference

import (
	"bytes"
	"cmp"
	_ "embed" // the page's template
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/stencil"
)

var (
	//go:embed page.html
	pageText string

	page = sync.OnceValue(func() *stencil.Template {
		return stencil.Must(stencil.New(stencil.Page, "page", pageText, stencil.Funcs{
			"prose": (&namer{}).prose, // placeholder, which Render replaces
		}))
	})
)

// Policy is the Content-Security-Policy of the page. It allows only the style and the
// script of this server.
const Policy = "default-src 'none'; style-src 'self'; script-src 'self'; font-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// schema is the part of a JSON Schema that the page shows.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"`
	Format      string             `json:"format"`
	Description string             `json:"description"`
	Enum        []any              `json:"enum"`
	Default     json.RawMessage    `json:"default"`
	Pattern     string             `json:"pattern"`
	MinLength   *int               `json:"minLength"`
	MaxLength   *int               `json:"maxLength"`
	MaxItems    *int               `json:"maxItems"`
	MaxMembers  *int               `json:"maxProperties"`
	Content     *schema            `json:"contentSchema"`
	OneOf       []*schema          `json:"oneOf"`
	Title       string             `json:"title"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	Items       *schema            `json:"items"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	AnyOf       []*schema          `json:"anyOf"`
	More        json.RawMessage    `json:"additionalProperties"`
}

type media struct {
	Schema   *schema            `json:"schema"`
	Example  json.RawMessage    `json:"example"`
	Examples map[string]example `json:"examples"`
}

// example is an example of a problem, or refers to one that many answers have.
type example struct {
	Ref   string `json:"$ref"`
	Value struct{ Title, Detail string }
}

type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                *schema
	Example               json.RawMessage
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]media
}

type document struct {
	Info struct {
		Title, Version, Description string
		Server                      string `json:"x-server-version"`
	}
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]json.RawMessage

	Components struct {
		Schemas map[string]*schema
		Headers map[string]json.RawMessage

		Responses  map[string]response
		Parameters map[string]parameter
		Examples   map[string]example
	}
	bodies map[string]bool // names of schemas of bodies, which operations show
}

type operation struct {
	ID          string `json:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Scope       string `json:"x-scope"`
	Parameters  []parameter
	RequestBody *struct{ Content map[string]media }
	Responses   map[string]response
}

// view is the page as its template sees it.
type view struct {
	Style, Script          string
	Title, Version, Server string
	Usual                  []failure
	About                  []block
	Groups                 []*group
	Schemas                []named
	Count                  int
}

type block struct {
	Heading, Text string
	Items         []string
}

type group struct {
	Name, Anchor, Description string
	Ops                       []*capability
}

type capability struct {
	ID, Method, Path, Summary, Description, Scope string
	Parameters, Body                              []row
	Request, Curl, Command                        string
	Answers                                       []answer
	Events                                        []frame
	Failures                                      []failure
	Usual                                         string
	operators                                     bool // only operators may call it
}

// failure is a slug of a problem.
type failure struct{ Status, Slug, Says string }

// frame is a kind of frame of a stream.
type frame struct{ Name, Schema, Says string }

type answer struct {
	Status, Description, Kind, Type, Schema, Example string
}

type row struct {
	Name, In, Type, Schema, Description string
	Required                            bool
}

type named struct {
	Name, Description string
	Rows              []row
}

const schemaRoot = "#/components/schemas/"

// Render returns the page of an OpenAPI document, which loads a style and a script from
// the given paths of this server.
func Render(openapi []byte, style, script string) ([]byte, error) {
	d := document{bodies: map[string]bool{}}
	if err := json.Unmarshal(openapi, &d); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	usual, err := d.usual()
	if err != nil {
		return nil, err
	}
	v := view{
		Style: style, Script: script,
		Title: d.Info.Title, Version: d.Info.Version, Server: d.Info.Server,
		Usual: usual, About: blocks(d.Info.Description),
	}
	at := map[string]*group{}
	var ops []*operation
	for _, t := range d.Tags {
		g := &group{Name: t.Name, Anchor: "group-" + slug(t.Name), Description: t.Description}
		at[t.Name], v.Groups = g, append(v.Groups, g)
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			raw, ok := d.Paths[path][method]
			if !ok {
				continue
			}
			x, err := d.operation(raw)
			if err != nil {
				return nil, fmt.Errorf("read %s %s: %w", method, path, err)
			}
			if len(x.Tags) == 0 || at[x.Tags[0]] == nil {
				return nil, fmt.Errorf("%s is in no group", x.ID)
			}
			ops = append(ops, &x)
			g := at[x.Tags[0]]
			g.Ops = append(g.Ops, d.capability(strings.ToUpper(method), path, &x, usual))
			v.Count++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if s := d.Components.Schemas[name]; !d.bodies[name] {
			v.Schemas = append(v.Schemas, named{name, s.Description, rows(s)})
		}
	}
	for _, g := range v.Groups {
		slices.SortStableFunc(g.Ops, func(a, b *capability) int {
			switch {
			case a.operators == b.operators:
				return 0
			case a.operators:
				return 1
			}
			return -1
		})
	}
	var b bytes.Buffer
	err = page().With(stencil.Funcs{"prose": d.namer(ops).prose}).Execute(&b, "page", v)
	return b.Bytes(), err
}

func (d *document) capability(method, path string, x *operation, usual []failure) *capability {
	c := &capability{
		ID: x.ID, Method: method, Path: path, Summary: x.Summary, Description: x.Description,
		Scope: x.Scope, operators: strings.HasPrefix(x.Scope, "admin:"),
	}
	for _, p := range x.Parameters {
		c.Parameters = append(c.Parameters, p.row())
	}
	if x.RequestBody != nil {
		m := x.RequestBody.Content["application/json"]
		if name, ok := strings.CutPrefix(m.Schema.Ref, schemaRoot); ok { // it is shown here, and not among the schemas
			d.bodies[name] = true
			m.Schema = d.Components.Schemas[name]
			x.RequestBody.Content["application/json"] = m
		}
		c.Body, c.Request = rows(m.Schema), pretty(m.Example)
	}
	var seen []string
	for _, status := range slices.Sorted(maps.Keys(x.Responses)) {
		r := x.Responses[status]
		if status >= "4" {
			for _, f := range r.failures(status) {
				if slices.ContainsFunc(usual, func(u failure) bool { return u.Slug == f.Slug }) {
					seen = append(seen, status+" `"+f.Slug+"`")
				} else {
					c.Failures = append(c.Failures, f)
				}
			}
			continue
		}
		a := answer{Status: status, Description: r.Description}
		for kind, m := range r.Content {
			a.Kind, a.Example = kind, pretty(m.Example)
			a.Type, a.Schema = typeOf(m.Schema)
			c.Events = append(c.Events, frames(m.Schema)...)
			if m.Schema.Content != nil && m.Schema.Content.Items != nil && len(m.Schema.Content.Items.OneOf) == 0 {
				a.Type, a.Schema = typeOf(m.Schema.Content.Items)
			}
		}
		c.Answers = append(c.Answers, a)
	}
	c.Usual = strings.Join(seen, ", ")
	c.Curl, c.Command = samples(method, path, x)
	return c
}

// failures lists the slugs of a status with their meanings.
func (r response) failures(status string) (out []failure) {
	all := r.Content["application/problem+json"].Examples
	for _, slug := range slices.Sorted(maps.Keys(all)) {
		v := all[slug].Value
		f := failure{status, slug, v.Detail}
		if f.Says == "" {
			f.Says = v.Title + "."
		}
		out = append(out, f)
	}
	return out
}

// operation reads an operation, with the answers and parameters that it shares with others.
func (d *document) operation(text []byte) (x operation, err error) {
	if err := json.Unmarshal(text, &x); err != nil {
		return x, err
	}
	for status, r := range x.Responses {
		if r.Ref != "" {
			r = d.Components.Responses[path.Base(r.Ref)]
			x.Responses[status] = r
		}
		for _, m := range r.Content {
			for name, e := range m.Examples {
				if e.Ref != "" {
					m.Examples[name] = d.Components.Examples[path.Base(e.Ref)]
				}
			}
		}
	}
	for i, p := range x.Parameters {
		if p.Ref != "" {
			x.Parameters[i] = d.Components.Parameters[path.Base(p.Ref)]
		}
	}
	return x, nil
}

// usual lists the failures that at least a quarter of the capabilities share; the
// page explains them once.
func (d *document) usual() (out []failure, err error) {
	counts, first, n := map[string]int{}, map[string]failure{}, 0
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			if method == "parameters" {
				continue
			}
			x, err := d.operation(d.Paths[path][method])
			if err != nil {
				return nil, fmt.Errorf("read %s %s: %w", method, path, err)
			}
			n++
			for status, r := range x.Responses {
				if status < "4" {
					continue
				}
				for _, f := range r.failures(status) {
					if counts[f.Slug]++; counts[f.Slug] == 1 {
						first[f.Slug] = f
					}
				}
			}
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(counts)) {
		if n >= 20 && counts[slug]*4 >= n {
			out = append(out, first[slug])
		}
	}
	slices.SortStableFunc(out, func(a, b failure) int { return cmp.Compare(a.Status, b.Status) })
	return out, nil
}

// frames lists the kinds of frames of a stream.
func frames(s *schema) (out []frame) {
	if s == nil || s.Content == nil || s.Content.Items == nil {
		return nil
	}
	for _, one := range s.Content.Items.OneOf {
		f := frame{Name: one.Title, Says: one.Description}
		if data := one.Properties["data"]; data != nil {
			_, f.Schema = typeOf(data.Content)
		}
		out = append(out, f)
	}
	return out
}
