package reference

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// kinds are the JSON types in everyday words.
var kinds = map[string]string{
	"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null", "object": "object",
}

// formats are the formats of text in everyday words.
var formats = map[string]string{
	"date-time": "time (RFC 3339)", "date": "day", "uuid": "id (UUID)", "uri": "address (URI)", "email": "e-mail address",
}

func inWords(kind, format string) string {
	if kind == "string" && formats[format] != "" {
		return formats[format]
	}
	return cmp.Or(kinds[kind], kind)
}

// quoted quotes a text as one word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\\''`) + "'" }

// samples returns a call with curl, and one with our own command line.
func samples(method, path string, x *operation) (curl, command string) {
	command = "yardmaster call " + x.ID
	var query []string
	for _, p := range x.Parameters {
		v := sampleOf(p.Schema, p.Name)
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", v)
			command += " " + p.Name + "=" + v
		case p.In == "query" && p.Required:
			query = append(query, p.Name+"="+v)
			command += " " + p.Name + "=" + v
		}
	}
	if query != nil {
		path += "?" + strings.Join(query, "&")
	}
	curl = "curl"
	if method != "GET" {
		curl += " -X " + method
	}
	curl += ` "$YARD` + path + `"`
	if x.Scope != "none" {
		curl += " \\\n  -H \"Authorization: Bearer $TOKEN\""
	}
	if x.RequestBody == nil {
		return curl, command
	}
	m := x.RequestBody.Content["application/json"]
	var flat bytes.Buffer
	if json.Compact(&flat, m.Example) != nil {
		return curl, command
	}
	curl += " \\\n  -H \"Content-Type: application/json\" \\\n  -d " + quoted(pretty(m.Example))
	var members map[string]json.RawMessage
	if json.Unmarshal(m.Example, &members) != nil {
		return curl, command
	}
	for _, r := range rows(m.Schema) {
		raw, ok := members[r.Name]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			flat.Reset()
			_ = json.Compact(&flat, raw) // it was parsed above
			text = flat.String()
		}
		if strings.ContainsAny(text, " '\"{}[]$\n*?&;|<>()\\") {
			text = quoted(text)
		}
		command += " " + r.Name + "=" + text
	}
	return curl, command
}

// sampleOf returns the value of a parameter for an example.
func sampleOf(s *schema, name string) string {
	switch {
	case s == nil:
	case len(s.Enum) > 0:
		return fmt.Sprint(s.Enum[0])
	case s.Default != nil:
		return strings.Trim(string(s.Default), `"`)
	case s.Type == "integer":
		return "1"
	}
	switch name {
	case "owner":
		return "acme"
	case "repo":
		return "web"
	}
	return strings.ToUpper(name)
}

func (p *parameter) row() row {
	kind, link := typeOf(p.Schema)
	return row{p.Name, p.In, kind, link, sentence(p.Description, p.Schema), p.Required}
}

// rows lists the members of an object, the required ones first.
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

// typeOf returns the name of a schema for a table, and the schema to link to.
func typeOf(s *schema) (kind, link string) {
	if s == nil {
		return "any value", ""
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
				k = "list of " + k
			} else {
				k = inWords(k, s.Format)
			}
			all = append(all, k)
		}
		return strings.Join(all, " or "), link
	case string:
		switch {
		case t == "array":
			k, l := typeOf(s.Items)
			return "list of " + k, l
		case t == "object" && len(s.Properties) == 0:
			var more schema
			if json.Unmarshal(s.More, &more) == nil && len(s.More) > 0 {
				k, l := typeOf(&more)
				return "object of " + k, l
			}
			return "object", ""
		}
		return inWords(t, s.Format), ""
	}
	return "any value", ""
}

// sentence returns a description together with the limits of the schema.
func sentence(text string, s *schema) string {
	if s == nil {
		return text
	}
	if text == "" {
		text = s.Description
	}
	var says []string
	if text != "" {
		says = append(says, strings.TrimSuffix(text, "."))
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
		add("one of `%s`", strings.Join(all, "`, `"))
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
	if s.MaxMembers != nil {
		add("at most %d members", *s.MaxMembers)
	}
	var more schema
	if len(s.More) > 0 && json.Unmarshal(s.More, &more) == nil && more.MaxLength != nil {
		add("each at most %d characters", *more.MaxLength)
	}
	if s.Pattern != "" {
		add("matches `%s`", s.Pattern)
	}
	if s.Default != nil {
		add("`%s` unless sent", s.Default)
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

// blocks parses the simple Markdown of the description: headings, paragraphs and
// lists.
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
