// Package reference renders the OpenAPI document as one page for people: every
// capability and every schema at an anchor of its own, readable without
// scripts, and with nothing fetched from anywhere.
package reference

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the page's template, style and script
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	style string
	//go:embed page.js
	script string

	page = template.Must(template.New("page").Funcs(template.FuncMap{
		"style":  func() template.CSS { return template.CSS(style) }, //nolint:gosec // our own file
		"script": func() template.JS { return template.JS(script) },  //nolint:gosec // our own file
	}).Parse(pageText))
)

// Policy is the Content-Security-Policy of the page: its own style and script
// and nothing else.
var Policy = fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", digest(style), digest(script))

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// schema is what the page shows of a JSON Schema.
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
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	Items       *schema            `json:"items"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	AnyOf       []*schema          `json:"anyOf"`
	More        json.RawMessage    `json:"additionalProperties"`
}

type media struct {
	Schema  *schema         `json:"schema"`
	Example json.RawMessage `json:"example"`
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                *schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]media
}

type document struct {
	Info  struct{ Title, Version, Description string }
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]json.RawMessage

	Components struct {
		Schemas   map[string]*schema
		Responses map[string]response
	}
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

// The page, as its template sees it.
type view struct {
	Title, Version string
	About          []block
	Groups         []*group
	Schemas        []named
	Count          int
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
	Request                                       string
	Answers                                       []answer
}

type answer struct {
	Status, Description, Kind, Type, Schema, Example string
	Failed                                           bool
}

type row struct {
	Name, In, Type, Schema, Description string
	Required                            bool
}

type named struct {
	Name, Description string
	Rows              []row
}

const (
	schemaRoot   = "#/components/schemas/"
	responseRoot = "#/components/responses/"
)

// Render makes the page of an OpenAPI document.
func Render(openapi []byte) ([]byte, error) {
	var d document
	if err := json.Unmarshal(openapi, &d); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	v := view{Title: d.Info.Title, Version: d.Info.Version, About: blocks(d.Info.Description)}
	at := map[string]*group{}
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
			var x operation
			if err := json.Unmarshal(raw, &x); err != nil {
				return nil, fmt.Errorf("read %s %s: %w", method, path, err)
			}
			if len(x.Tags) == 0 || at[x.Tags[0]] == nil {
				return nil, fmt.Errorf("%s is in no group", x.ID)
			}
			g := at[x.Tags[0]]
			g.Ops = append(g.Ops, d.capability(strings.ToUpper(method), path, &x))
			v.Count++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		v.Schemas = append(v.Schemas, named{name, s.Description, rows(s)})
	}
	var b bytes.Buffer
	err := page.Execute(&b, v)
	return b.Bytes(), err
}

func (d *document) capability(method, path string, x *operation) *capability {
	c := &capability{ID: x.ID, Method: method, Path: path, Summary: x.Summary, Description: x.Description, Scope: x.Scope}
	for _, p := range x.Parameters {
		c.Parameters = append(c.Parameters, p.row())
	}
	if x.RequestBody != nil {
		m := x.RequestBody.Content["application/json"]
		c.Body, c.Request = rows(m.Schema), pretty(m.Example)
	}
	for _, status := range slices.Sorted(maps.Keys(x.Responses)) {
		r := x.Responses[status]
		if name, ok := strings.CutPrefix(r.Ref, responseRoot); ok {
			r = d.Components.Responses[name]
		}
		a := answer{Status: status, Description: r.Description, Failed: status >= "4"}
		for kind, m := range r.Content {
			a.Kind, a.Example = kind, pretty(m.Example)
			a.Type, a.Schema = typeOf(m.Schema)
		}
		if a.Failed {
			a.Example = "" // they are all alike
		}
		c.Answers = append(c.Answers, a)
	}
	return c
}

func (p *parameter) row() row {
	kind, link := typeOf(p.Schema)
	return row{p.Name, p.In, kind, link, sentence(p.Description, p.Schema), p.Required}
}

// rows are the members of an object, the required ones first.
func rows(s *schema) (out []row) {
	if s == nil {
		return nil
	}
	for name, m := range s.Properties {
		kind, link := typeOf(m)
		out = append(out, row{name, "", kind, link, sentence(m.Description, m), slices.Contains(s.Required, name)})
	}
	slices.SortFunc(out, func(a, b row) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return out
}

// typeOf is how a schema is named in a table, and the schema to link to.
func typeOf(s *schema) (kind, link string) {
	if s == nil {
		return "any", ""
	}
	if name, ok := strings.CutPrefix(s.Ref, schemaRoot); ok {
		return name, name
	}
	if len(s.AnyOf) > 0 {
		var all []string
		for _, one := range s.AnyOf {
			k, l := typeOf(one)
			if all = append(all, k); l != "" {
				link = l
			}
		}
		return strings.Join(all, " or "), link
	}
	switch t := s.Type.(type) {
	case []any:
		var all []string
		for _, one := range t {
			k := fmt.Sprint(one)
			if k == "array" {
				k, link = typeOf(s.Items)
				k = "array of " + k
			}
			all = append(all, k)
		}
		return strings.Join(all, " or "), link
	case string:
		switch {
		case t == "array":
			k, l := typeOf(s.Items)
			return "array of " + k, l
		case t == "object" && len(s.Properties) == 0:
			return "object", ""
		case s.Format != "":
			return t + " (" + s.Format + ")", ""
		}
		return t, ""
	}
	return "any", ""
}

// sentence is a description with what the schema demands.
func sentence(text string, s *schema) string {
	if s == nil {
		return text
	}
	if text == "" {
		text = s.Description
	}
	var says []string
	if text != "" {
		says = append(says, text)
	}
	add := func(format string, a ...any) { says = append(says, fmt.Sprintf(format, a...)) }
	if s.Enum == nil && s.Items != nil && s.Items.Enum != nil {
		s.Enum = s.Items.Enum
	}
	if len(s.Enum) > 0 {
		var all []string
		for _, e := range s.Enum {
			if e != nil {
				all = append(all, fmt.Sprint(e))
			}
		}
		add("one of %s", strings.Join(all, ", "))
	}
	if s.Minimum != nil {
		add("at least %v", *s.Minimum)
	}
	if s.Maximum != nil {
		add("at most %v", *s.Maximum)
	}
	if s.MinLength != nil && *s.MinLength > 1 {
		add("at least %d characters", *s.MinLength)
	}
	if s.MaxLength != nil {
		add("at most %d characters", *s.MaxLength)
	}
	if s.MaxItems != nil {
		add("at most %d entries", *s.MaxItems)
	}
	if s.Pattern != "" {
		add("matches %s", s.Pattern)
	}
	if s.Default != nil {
		add("%s unless sent", s.Default)
	}
	return strings.Join(says, "; ")
}

func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// blocks reads the little Markdown of the description: headings, paragraphs
// and lists.
func blocks(text string) (out []block) {
	for part := range strings.SplitSeq(text, "\n\n") {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
		case strings.HasPrefix(part, "## "):
			out = append(out, block{Heading: strings.TrimPrefix(part, "## ")})
		case strings.HasPrefix(part, "* "):
			b := block{}
			for line := range strings.SplitSeq(part, "\n") {
				b.Items = append(b.Items, strings.TrimPrefix(line, "* "))
			}
			out = append(out, b)
		default:
			out = append(out, block{Text: part})
		}
	}
	return out
}

func slug(s string) string {
	return strings.Trim(strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-"), "-")
}
