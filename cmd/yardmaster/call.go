package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"yardmaster/internal/app"
	"yardmaster/internal/client"
)

// runCall calls a capability by its id, and sends the arguments where the row says.
// A value of a text input is sent unchanged; any other is JSON, or else text.
func runCall(ctx context.Context, args []string) error {
	var one *app.Op
	ops := app.Ops()
	if len(args) > 0 {
		for i := range ops {
			if ops[i].ID == args[0] {
				one = &ops[i]
			}
		}
	}
	if one == nil {
		plain, err := parse(flags("call"), args, "[CAPABILITY]…")
		if err != nil {
			return err
		}
		return listOps(ops, strings.Join(plain, " "))
	}
	if len(args) == 2 && (args[1] == "-h" || args[1] == "--help") {
		return describeOp(one)
	}
	path, body, err := assemble(one, args[1:])
	if err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	if one.IsStream() {
		return c.Stream(ctx, path, "", func(f client.Frame) error {
			fmt.Println(client.Escape(strings.TrimLeft(fmt.Sprintf("%s %s %s", f.ID, f.Event, f.Data), " ")))
			return nil
		})
	}
	out, err := c.Fetch(ctx, one.Method, path, body)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if json.Indent(&b, out, "", "  ") == nil {
		out = b.Bytes()
	}
	fmt.Println(client.Escape(strings.TrimSuffix(string(out), "\n")))
	return nil
}

// listOps lists the capabilities whose ids contain part.
func listOps(ops []app.Op, part string) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	n := 0
	for _, o := range ops {
		if strings.Contains(o.ID, part) {
			n++
			fmt.Fprintf(t, "%s\t%s\t%s\n", o.ID, o.Method, o.Path)
		}
	}
	t.Flush()
	if n == 0 {
		return misused("there is no capability %q; `yardmaster call` lists them", part)
	}
	return nil
}

// describeOp prints the description and the inputs of a capability.
func describeOp(o *app.Op) error {
	fmt.Printf("%s: %s\n%s %s", o.ID, o.Summary, o.Method, o.Path)
	if names := o.Rule.Names(); len(names) > 0 {
		fmt.Printf("   needs %s", strings.Join(names, " and "))
	}
	fmt.Println()
	if o.Doc != "" {
		fmt.Println(o.Doc)
	}
	inputs := o.Inputs()
	if len(inputs) > 0 {
		fmt.Println()
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, in := range inputs {
		needed := ""
		if in.Required {
			needed = "required"
		}
		fmt.Fprintf(t, "  %s=\t%s\t%s\t%s\n", in.Name, in.Kind, needed, in.Doc)
	}
	return t.Flush()
}

// assemble puts arguments of the form name=value into the path, the query and the
// body.
func assemble(o *app.Op, args []string) (path string, body any, err error) {
	path = o.Path
	query, members := url.Values{}, map[string]any{}
	where, kinds := o.Input(), o.Kinds()
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return "", nil, misused("%q has not the form name=value", a)
		}
		switch where[name] {
		case "path":
			path = strings.NewReplacer("{"+name+"}", url.PathEscape(value), "{"+name+"...}", value).Replace(path)
			delete(where, name)
		case "query":
			query.Add(name, value)
		case "body":
			var v any = value
			if !isText(kinds[name]) || value == "null" {
				if json.Unmarshal([]byte(value), &v) != nil {
					v = value
				}
			}
			members[name] = v
		default:
			return "", nil, misused("%s has no input %q; `yardmaster call %s -h` lists them", o.ID, name, o.ID)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(where)) {
		if where[name] == "path" {
			return "", nil, misused("%s needs %s=…", o.ID, name)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if len(members) > 0 {
		body = members
	}
	return path, body, nil
}

func isText(t reflect.Type) bool {
	return t != nil && (t.Kind() == reflect.String || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String)
}
