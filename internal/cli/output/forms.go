package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"go.yaml.in/yaml/v3"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/client"
	"yardmaster/internal/stencil"
	"yardmaster/internal/terminal"
)

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

func parsed(text string) (*stencil.Template, error) {
	return stencil.New(stencil.Text, "--template", text, stencil.Funcs{
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
	})
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
	if err := t.Execute(&b, "--template", object.Numbers(v)); err != nil {
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
