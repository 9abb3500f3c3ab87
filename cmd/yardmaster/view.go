package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// viewCommand is the command that shows one object.
func (n *noun) viewCommand(summary string, examples ...string) command {
	if len(examples) == 0 {
		examples = []string{"yardmaster " + n.name + " view @last", "yardmaster " + n.name + " view ID -o yaml"}
	}
	return command{words: n.name + " view", args: "ID", summary: summary, examples: examples, of: n,
		define: func(fl *flag.FlagSet) action {
			o := &output{}
			o.addWatch(fl)
			web := fl.Bool("web", false, "open its page in a browser instead")
			return func(ctx context.Context, plain []string) error {
				if *web {
					return openPage(ctx, n, plain[0])
				}
				c, err := connect()
				if err != nil {
					return err
				}
				n.seen(plain[0])
				people := n.view
				if n.show != nil {
					people = func(w io.Writer, b []byte) error { return n.show(ctx, c, w, b) }
				}
				return o.show(ctx, func() ([]byte, error) { return n.one(ctx, c, plain[0]) }, withLogins(ctx, c, people))
			}
		}}
}

// one reads an object by its id.
func (n *noun) one(ctx context.Context, c *client.Client, id string) ([]byte, error) {
	if n.get == "" {
		in := n.within(ctx, id)
		if _, known := filters(one(n.list))["id"]; known && wholeID.MatchString(id) {
			in = append(in, given{name: "filter", text: "id:" + id})
		}
		rows, _, err := n.rows(ctx, c, in, everything)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			v, err := decoded(r)
			if row, ok := v.(map[string]any); err == nil && ok && n.id(row) == id {
				return r, nil
			}
		}
		return nil, fmt.Errorf("there is no %s %s", n.name, id)
	}
	path, _, err := assemble(one(n.get), n.address(n.get, id))
	if err != nil {
		return nil, err
	}
	return c.Fetch(ctx, http.MethodGet, path, nil)
}

// within are the inputs of the list that has an object.
func (n *noun) within(ctx context.Context, _ string) []given {
	if !n.perRepo {
		return nil
	}
	in, err := inRepo(ctx, "", nil)
	if err != nil {
		return nil
	}
	return in
}

// address are the inputs by which a capability is told which object is meant.
func (n *noun) address(capability, id string) []given {
	o := one(capability)
	if owner, repo, both := strings.Cut(id, "/"); both && strings.Contains(o.Path, "{owner}") {
		return []given{{name: "owner", text: owner}, {name: "repo", text: repo}}
	}
	return []given{{name: placeholder(o.Path), text: id}}
}

// placeholder is the last input in a path, or "".
func placeholder(path string) string {
	at := strings.LastIndexByte(path, '{')
	if at < 0 {
		return ""
	}
	name, _, _ := strings.Cut(path[at+1:], "}")
	return strings.TrimSuffix(name, "...")
}

// view writes what is known of an object: short members as facts, texts below them, lists
// of objects as tables. What the noun hides is in the other forms of the answer.
func (n *noun) view(w io.Writer, b []byte) error {
	v, err := decoded(b)
	if err != nil {
		return err
	}
	row, ok := v.(map[string]any)
	if !ok {
		return (&output{}).print(w, b)
	}
	n.seen(n.id(row))
	s := screen()
	if label := plainText(row[n.label]); n.label != "" && label != "" {
		fmt.Fprintln(w, s.Paint(terminal.Strong, client.Inert(label)))
	}
	members, err := ordered(b)
	if err != nil {
		return err
	}
	if n.plain != nil {
		n.plain(row)
	}
	if err := writeMembers(w, s, members, row, append([]string{n.label}, n.hidden...)); err != nil {
		return err
	}
	if n.next != nil && n.id(row) != "" {
		for i, line := range n.next(row) {
			if i == 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, client.Inert(line))
		}
	}
	return nil
}

// ordered are the names of an object's members in their order.
func ordered(b []byte) (names []string, err error) {
	d := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return nil, err
		}
		if name, ok := t.(string); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// long is the length from which a text is no fact of a line.
const long = 100

func writeMembers(w io.Writer, s terminal.Screen, members []string, row map[string]any, leaveOut []string) error {
	now := time.Now()
	var facts []terminal.Fact
	var texts, tables []string
	for _, name := range members {
		if slices.Contains(leaveOut, name) {
			continue
		}
		v := row[name]
		label := strings.ReplaceAll(name, "_", " ")
		switch v := v.(type) {
		case nil:
			continue
		case string:
			if v == "" {
				continue
			}
			if len(v) > long || strings.Contains(strings.TrimSpace(v), "\n") {
				texts = append(texts, name)
				continue
			}
			c := terminal.Cell{Text: v, Tone: terminal.ToneOf(v)}
			if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
				c.Text = terminal.When(now, at)
			}
			facts = append(facts, terminal.Fact{Label: label, Value: c})
		case []any:
			if len(v) == 0 {
				continue
			}
			if _, objects := v[0].(map[string]any); objects {
				tables = append(tables, name)
				continue
			}
			facts = append(facts, terminal.Fact{Label: label, Value: terminal.Cell{Text: plainText(v)}})
		case map[string]any:
			for _, inner := range names(v) {
				if slices.Contains(leaveOut, name+"."+inner) {
					continue
				}
				text := plainText(v[inner])
				if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
					text = terminal.When(now, at)
				}
				if text != "" {
					facts = append(facts, terminal.Fact{Label: label + " " + strings.ReplaceAll(inner, "_", " "),
						Value: terminal.Cell{Text: text, Tone: terminal.ToneOf(text)}})
				}
			}
		default:
			facts = append(facts, terminal.Fact{Label: label, Value: terminal.Cell{Text: plainText(v)}})
		}
	}
	if err := s.Facts(w, facts); err != nil {
		return err
	}
	for _, name := range texts {
		text, _ := row[name].(string)
		fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Faint, client.Inert(strings.ReplaceAll(name, "_", " "))))
		paragraph(w, text)
	}
	for _, name := range tables {
		fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Faint, client.Inert(strings.ReplaceAll(name, "_", " "))))
		if err := objects(w, s, row[name].([]any), now); err != nil {
			return err
		}
	}
	return nil
}

// paragraph writes a text of lines, broken where the screen ends.
func paragraph(w io.Writer, text string) {
	for line := range strings.SplitSeq(client.InertLines(text), "\n") {
		for _, part := range client.Broken(line, screen().Width-2) {
			fmt.Fprintln(w, "  "+part)
		}
	}
}

// objects writes a list of objects as a table of their short members.
func objects(w io.Writer, s terminal.Screen, all []any, now time.Time) error {
	var heads []string
	for _, e := range all {
		row, _ := e.(map[string]any)
		for _, name := range names(row) {
			if !slices.Contains(heads, name) && plainText(row[name]) != "" {
				heads = append(heads, name)
			}
		}
	}
	var columns []terminal.Column
	for _, h := range heads {
		columns = append(columns, terminal.Column{Head: strings.ToUpper(strings.ReplaceAll(h, "_", " ")), Flex: true})
	}
	var cells [][]terminal.Cell
	for _, e := range all {
		row, _ := e.(map[string]any)
		var line []terminal.Cell
		for _, h := range heads {
			text := plainText(row[h])
			c := terminal.Cell{Text: text, Tone: terminal.ToneOf(text)}
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				c.Text = terminal.Age(now, at)
			}
			line = append(line, c)
		}
		cells = append(cells, line)
	}
	return s.Table(w, columns, cells)
}

// pageAddress is the address of an object's page.
func (n *noun) pageAddress(server, id string) string {
	if n.page == "" {
		return ""
	}
	return server + "/ui/" + n.page + "/" + url.PathEscape(id)
}
