package cli

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

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// output are the flags that say in which form an answer is shown.
type output struct {
	fields, jq, template, format string
	watch                        bool
	every                        time.Duration
	flags                        *flag.FlagSet // of an answer that can be followed
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

// from reads flags that somebody else has declared.
func (o *output) from(fl *flag.FlagSet) {
	for name, at := range map[string]*string{"json": &o.fields, "jq": &o.jq, "template": &o.template, "output": &o.format} {
		if f := fl.Lookup(name); f != nil {
			*at = f.Value.String()
		}
	}
}

// answered makes a call, and prints its answer if that is wanted in another form than that for
// people: then done is set. Else the answer is decoded into out.
func (o *output) answered(ctx context.Context, c *client.Client, method, path string, in, out any) (done bool, err error) {
	b, err := c.Fetch(ctx, method, path, in)
	if err != nil {
		return false, err
	}
	if o.forPrograms() {
		return true, o.print(os.Stdout, b)
	}
	return false, json.Unmarshal(b, out)
}

// answers is the definition of a command without flags of its own, whose answer programs can have.
func answers(do func(ctx context.Context, plain []string, o *output) error) func(*flag.FlagSet) action {
	return func(fl *flag.FlagSet) action {
		o := &output{}
		o.add(fl)
		return func(ctx context.Context, plain []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return do(ctx, plain, o)
		}
	}
}

// addWatch declares the flags of an answer that can be followed.
func (o *output) addWatch(fl *flag.FlagSet) {
	o.add(fl)
	o.flags = fl
	fl.BoolVarP(&o.watch, "watch", "w", false, "show it again whenever it has changed, until Ctrl-C")
	fl.DurationVar(&o.every, "every", 2*time.Second, "with --watch, how often to ask the server: `TIME`, at least 1s")
}

// check fails with misuse for flags that make no sense, before anything is asked.
func (o *output) check() error {
	switch {
	case !slices.Contains([]string{"", "table", "json", "yaml"}, o.format):
		return exit.Misused("-o takes table, json or yaml, not %q", o.format)
	case o.jq != "" && o.template != "":
		return exit.Misused("give --jq or --template, not both")
	case o.flags != nil && o.every < time.Second:
		return exit.Misused("--every takes 1s or more")
	case o.flags != nil && o.flags.Changed("every") && !o.watch:
		return exit.Misused("--every needs --watch")
	}
	if o.jq != "" {
		if _, err := query(o.jq); err != nil {
			return exit.Misused("--jq: %v", err)
		}
	}
	if o.template != "" {
		if _, err := parsed(o.template); err != nil {
			return exit.Misused("--template: %v", err)
		}
	}
	return nil
}

// forPrograms tells whether another form than that for people is wanted.
func (o *output) forPrograms() bool {
	return o.fields != "" || o.jq != "" || o.template != "" || o.format == "json" || o.format == "yaml"
}

// spoken are plain arguments as a sentence has them: none for what is taken away.
func spoken(plain []string) []string {
	said := slices.Clone(plain)
	for i, word := range said {
		if word == "null" {
			said[i] = "none"
		}
	}
	return said
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
	v, err := object.Decode(answer)
	if err != nil {
		return nil, err
	}
	one := func(v any) (json.RawMessage, error) {
		var b bytes.Buffer
		b.WriteByte('{')
		for i, f := range fields {
			f = strings.TrimSpace(f)
			value, known := object.Lookup(v, f)
			if of, ok := v.(map[string]any); ok && !known {
				return nil, exit.Misused("there is no field %q; there are %s", f, strings.Join(object.Names(of), ", "))
			}
			if i > 0 {
				b.WriteByte(',')
			}
			for j, part := range []any{f, value} {
				text, err := object.Encode(part)
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
	return object.Encode(out)
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
	v, err := object.Decode(answer)
	if err != nil {
		return err
	}
	for results := code.Run(object.Numbers(v)); ; {
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
		"short": object.Short,
		"join": func(with string, of []any) string {
			words := make([]string, len(of))
			for i, v := range of {
				words[i] = fmt.Sprint(v)
			}
			return strings.Join(words, with)
		},
		"json": func(v any) (string, error) {
			b, err := object.Encode(v)
			return string(b), err
		},
	}).Parse(text)
}

func printTemplate(w io.Writer, answer []byte, text string) error {
	t, err := parsed(text)
	if err != nil {
		return err
	}
	v, err := object.Decode(answer)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, object.Numbers(v)); err != nil {
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
// writes the form for people. What is shown again is drawn on the terminal's other screen, and
// its last state stays on the first.
func (o *output) show(ctx context.Context, read func() ([]byte, error), people func(io.Writer, []byte) error) error {
	if err := o.check(); err != nil {
		return err
	}
	text := func() (string, error) {
		b, err := read()
		if err != nil {
			return "", err
		}
		var text strings.Builder
		if o.forPrograms() {
			err = o.print(&text, b)
		} else {
			err = people(&text, b)
		}
		return text.String(), err
	}
	now, err := text()
	if err != nil {
		return err
	}
	if !o.watch {
		return screen.Paged(now)
	}
	s, before := screen.Out(), ""
	if s.Live && s.Width > 0 {
		leave := s.Enter(os.Stdout)
		defer func() { // before also when the server is lost
			leave()
			_, _ = io.WriteString(os.Stdout, before)
		}()
	}
	for {
		if now != before {
			before = now
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
		if now, err = text(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}
