// Package output has the flags that say in which form an answer is shown, and shows it: JSON, YAML, jq,
// templates, or the form for people, once or again whenever it changes.
package output

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/client"
)

// Flags are the flags that say in which form an answer is shown.
type Flags struct {
	fields, Jq, Template, Format string
	Watch                        bool
	every                        time.Duration
	flags                        *flag.FlagSet // of an answer that can be followed
}

// Add declares the flags.
func (o *Flags) Add(fl *flag.FlagSet) {
	fl.StringVar(&o.fields, "json", "", "print JSON with these `FIELDS` of each object, with commas between; all with '*'")
	fl.StringVar(&o.Jq, "jq", "", "print what the jq `EXPRESSION` makes of the JSON")
	if fl.Lookup("template") == nil { // of agents
		fl.StringVar(&o.Template, "template", "", "print what the Go `TEMPLATE` makes of the JSON; age, short, join and json are functions")
	}
	fl.StringVarP(&o.Format, "output", "o", "", "`FORM` of the answer: table, json or yaml")
}

// From reads flags that somebody else has declared.
func (o *Flags) From(fl *flag.FlagSet) {
	for name, at := range map[string]*string{"json": &o.fields, "jq": &o.Jq, "template": &o.Template, "output": &o.Format} {
		if f := fl.Lookup(name); f != nil {
			*at = f.Value.String()
		}
	}
}

// Answered makes a call, and prints its answer if that is wanted in another form than that for
// people: then done is set. Else the answer is decoded into out.
func (o *Flags) Answered(ctx context.Context, c *client.Client, method, path string, in, out any) (done bool, err error) {
	b, err := c.Fetch(ctx, method, path, in)
	if err != nil {
		return false, err
	}
	if o.ForPrograms() {
		return true, o.Print(os.Stdout, b)
	}
	return false, json.Unmarshal(b, out)
}

// AddWatch declares the flags of an answer that can be followed.
func (o *Flags) AddWatch(fl *flag.FlagSet) {
	o.Add(fl)
	o.flags = fl
	fl.BoolVarP(&o.Watch, "watch", "w", false, "show it again whenever it has changed, until Ctrl-C")
	fl.DurationVar(&o.every, "every", 2*time.Second, "with --watch, how often to ask the server: `TIME`, at least 1s")
}

// Check fails with misuse for flags that make no sense, before anything is asked.
func (o *Flags) Check() error {
	switch {
	case !slices.Contains([]string{"", "table", "json", "yaml"}, o.Format):
		return exit.Misused("-o takes table, json or yaml, not %q", o.Format)
	case o.Jq != "" && o.Template != "":
		return exit.Misused("give --jq or --template, not both")
	case o.flags != nil && o.every < time.Second:
		return exit.Misused("--every takes 1s or more")
	case o.flags != nil && o.flags.Changed("every") && !o.Watch:
		return exit.Misused("--every needs --watch")
	}
	if o.Jq != "" {
		if _, err := query(o.Jq); err != nil {
			return exit.Misused("--jq: %v", err)
		}
	}
	if o.Template != "" {
		if _, err := parsed(o.Template); err != nil {
			return exit.Misused("--template: %v", err)
		}
	}
	return nil
}

// ForPrograms tells whether another form than that for people is wanted.
func (o *Flags) ForPrograms() bool {
	return o.fields != "" || o.Jq != "" || o.Template != "" || o.Format == "json" || o.Format == "yaml"
}

// Print writes an answer, which is JSON, in the form that is wanted. Characters that
// would control the terminal are written as escapes.
func (o *Flags) Print(w io.Writer, answer []byte) error {
	if o.fields != "" && o.fields != "*" {
		picked, err := pickFields(answer, strings.Split(o.fields, ","))
		if err != nil {
			return err
		}
		answer = picked
	}
	switch {
	case o.Jq != "":
		return printJQ(w, answer, o.Jq)
	case o.Template != "":
		return printTemplate(w, answer, o.Template)
	case o.Format == "yaml":
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

// Show prints an answer once, or again whenever it changes. read asks the server; people
// writes the form for people. What is shown again is drawn on the terminal's other screen, and
// its last state stays on the first.
func (o *Flags) Show(ctx context.Context, read func() ([]byte, error), people func(io.Writer, []byte) error) error {
	if err := o.Check(); err != nil {
		return err
	}
	text := func() (string, error) {
		b, err := read()
		if err != nil {
			return "", err
		}
		var text strings.Builder
		if o.ForPrograms() {
			err = o.Print(&text, b)
		} else {
			err = people(&text, b)
		}
		return text.String(), err
	}
	now, err := text()
	if err != nil {
		return err
	}
	if !o.Watch {
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
