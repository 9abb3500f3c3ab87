package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/itchyny/gojq"
	flag "github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// output are the flags that say in which form an answer is shown.
type output struct {
	fields, jq, template, format string
	watch                        bool
	every                        time.Duration
}

// add declares the flags.
func (o *output) add(fl *flag.FlagSet) {
	fl.StringVar(&o.fields, "json", "", "print JSON with these `FIELDS` of each object, with commas between; all with '*'")
	fl.StringVar(&o.jq, "jq", "", "print what the jq `EXPRESSION` makes of the JSON")
	if fl.Lookup("template") == nil { // of agents
		fl.StringVar(&o.template, "template", "", "print what the Go `TEMPLATE` makes of the JSON; age, short, join and json are functions")
	}
	fl.StringVarP(&o.format, "output", "o", "", "`FORM` of the answer: table, json or yaml")
}

// addWatch declares the flags of an answer that can be followed.
func (o *output) addWatch(fl *flag.FlagSet) {
	o.add(fl)
	fl.BoolVarP(&o.watch, "watch", "w", false, "show it again whenever it has changed, until Ctrl-C")
	fl.DurationVar(&o.every, "every", 2*time.Second, "with --watch, how often to ask the server: `TIME`, at least 1s")
}

// check fails with misuse for flags that make no sense, before anything is asked.
func (o *output) check() error {
	switch {
	case !slices.Contains([]string{"", "table", "json", "yaml"}, o.format):
		return misused("-o takes table, json or yaml, not %q", o.format)
	case o.jq != "" && o.template != "":
		return misused("give --jq or --template, not both")
	case o.watch && o.every < time.Second:
		return misused("--every takes 1s or more")
	}
	if o.jq != "" {
		if _, err := query(o.jq); err != nil {
			return misused("--jq: %v", err)
		}
	}
	if o.template != "" {
		if _, err := parsed(o.template); err != nil {
			return misused("--template: %v", err)
		}
	}
	return nil
}

// forPrograms tells whether another form than that for people is wanted.
func (o *output) forPrograms() bool {
	return o.fields != "" || o.jq != "" || o.template != "" || o.format == "json" || o.format == "yaml"
}

// print writes an answer, which is JSON, in the form that is wanted. Characters that
// would control the terminal are written as escapes.
func (o *output) print(w io.Writer, answer []byte) error {
	if o.fields != "" && o.fields != "*" {
		picked, err := pickFields(answer, strings.Split(o.fields, ","))
		if err != nil {
			return err
		}
		answer = picked
	}
	switch {
	case o.jq != "":
		return printJQ(w, answer, o.jq)
	case o.template != "":
		return printTemplate(w, answer, o.template)
	case o.format == "yaml":
		return printYAML(w, answer)
	}
	var b bytes.Buffer
	if json.Indent(&b, answer, "", "  ") == nil {
		answer = b.Bytes()
	}
	_, err := fmt.Fprintln(w, client.Escape(strings.TrimSuffix(string(answer), "\n")))
	return err
}

// pickFields keeps some members of an object, or of each object of an array. A dotted
// name is a member of a member.
func pickFields(answer []byte, fields []string) ([]byte, error) {
	v, err := decoded(answer)
	if err != nil {
		return nil, err
	}
	one := func(v any) (json.RawMessage, error) {
		var b bytes.Buffer
		b.WriteByte('{')
		for i, f := range fields {
			f = strings.TrimSpace(f)
			value, known := lookup(v, f)
			if of, ok := v.(map[string]any); ok && !known {
				return nil, misused("there is no field %q; there are %s", f, strings.Join(names(of), ", "))
			}
			if i > 0 {
				b.WriteByte(',')
			}
			for j, part := range []any{f, value} {
				text, err := encoded(part)
				if err != nil {
					return nil, err
				}
				if b.Write(text); j == 0 {
					b.WriteByte(':')
				}
			}
		}
		b.WriteByte('}')
		return b.Bytes(), nil
	}
	rows, many := v.([]any)
	if !many {
		return one(v)
	}
	out := make([]json.RawMessage, 0, len(rows))
	for _, r := range rows {
		picked, err := one(r)
		if err != nil {
			return nil, err
		}
		out = append(out, picked)
	}
	return encoded(out)
}

func names(of map[string]any) (all []string) {
	for name := range of {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// lookup is the member of a dotted name.
func lookup(v any, at string) (any, bool) {
	for part := range strings.SplitSeq(at, ".") {
		of, ok := v.(map[string]any)
		if !ok {
			return nil, v == nil
		}
		if v, ok = of[part]; !ok {
			return nil, false
		}
	}
	return v, true
}

// decoded is JSON with its numbers as they are written.
func decoded(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return v, d.Decode(&v)
}

// encoded is JSON without the escapes that only pages need.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// numbers puts numbers into the types that jq and templates calculate with.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

func query(expression string) (*gojq.Code, error) {
	q, err := gojq.Parse(expression)
	if err != nil {
		return nil, err
	}
	return gojq.Compile(q)
}

// printJQ prints each result on a line, texts without quotes.
func printJQ(w io.Writer, answer []byte, expression string) error {
	code, err := query(expression)
	if err != nil {
		return err
	}
	v, err := decoded(answer)
	if err != nil {
		return err
	}
	for results := code.Run(numbers(v)); ; {
		result, more := results.Next()
		if !more {
			return nil
		}
		if err, failed := result.(error); failed {
			if halt := (*gojq.HaltError)(nil); errors.As(err, &halt) && halt.Value() == nil {
				return nil
			}
			return fmt.Errorf("--jq: %w", err)
		}
		text, ok := result.(string)
		if !ok {
			b, err := gojq.Marshal(result)
			if err != nil {
				return err
			}
			text = string(b)
		}
		if _, err := fmt.Fprintln(w, client.Escape(text)); err != nil {
			return err
		}
	}
}

func parsed(text string) (*template.Template, error) {
	return template.New("--template").Funcs(template.FuncMap{
		"age": func(at string) string {
			t, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				return at
			}
			return terminal.Age(time.Now(), t)
		},
		"short": short,
		"join": func(with string, of []any) string {
			words := make([]string, len(of))
			for i, v := range of {
				words[i] = fmt.Sprint(v)
			}
			return strings.Join(words, with)
		},
		"json": func(v any) (string, error) {
			b, err := encoded(v)
			return string(b), err
		},
	}).Parse(text)
}

func printTemplate(w io.Writer, answer []byte, text string) error {
	t, err := parsed(text)
	if err != nil {
		return err
	}
	v, err := decoded(answer)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, numbers(v)); err != nil {
		return err
	}
	out := client.Escape(b.String())
	if !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	_, err = io.WriteString(w, out)
	return err
}

// printYAML prints JSON as YAML, with its members in their order.
func printYAML(w io.Writer, answer []byte) error {
	var b bytes.Buffer
	if json.Compact(&b, answer) != nil {
		return errors.New("the answer is no JSON")
	}
	d := json.NewDecoder(&b)
	d.UseNumber()
	n, err := yamlNode(d)
	if err != nil {
		return err
	}
	out, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, client.Escape(string(out)))
	return err
}

func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for d.More() {
			child, err := yamlNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := d.Token() // the end
		return n, err
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: t}
		if client.Escape(t) != t {
			n.Style = yaml.DoubleQuotedStyle // where escapes mean what they mean in JSON
		}
		return n, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(t.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// show prints an answer once, or again whenever it changes. read asks the server; people
// writes the form for people.
func (o *output) show(ctx context.Context, read func() ([]byte, error), people func(io.Writer, []byte) error) error {
	if err := o.check(); err != nil {
		return err
	}
	form := func(w io.Writer, b []byte) error {
		if o.forPrograms() {
			return o.print(w, b)
		}
		return people(w, b)
	}
	before := ""
	for {
		b, err := read()
		if err != nil {
			return err
		}
		var text strings.Builder
		if err := form(&text, b); err != nil {
			return err
		}
		if !o.watch {
			_, err := io.WriteString(os.Stdout, text.String())
			return err
		}
		if text.String() != before {
			before = text.String()
			s := screen()
			s.Clear(os.Stdout)
			if _, err := io.WriteString(os.Stdout, before); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how a watch ends
		case <-time.After(o.every):
		}
	}
}

// screen is standard output as a screen.
func screen() terminal.Screen { return terminal.Of(os.Stdout, os.Getenv) }
