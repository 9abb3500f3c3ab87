package noun

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// ViewCommand is the command that shows one object.
func (n *Noun) ViewCommand(summary string, examples ...string) tree.Command {
	if len(examples) == 0 {
		examples = []string{"yardmaster " + n.Name + " view @last", "yardmaster " + n.Name + " view ID -o yaml"}
	}
	answers := n.Get
	if answers == "" {
		answers = n.List
	}
	return tree.Command{Words: n.Name + " view", Args: "ID", Summary: summary, Examples: examples, Of: n, Answers: answers,
		Rows: n.Get == "",
		Define: func(fl *flag.FlagSet) tree.Action {
			o := &output.Flags{}
			o.AddWatch(fl)
			web := fl.Bool("web", false, "open its page in a browser instead")
			return func(ctx context.Context, plain []string) error {
				if *web {
					return OpenPage(ctx, n, plain[0])
				}
				c, err := signin.Connect()
				if err != nil {
					return err
				}
				people := n.View
				if n.Show != nil {
					people = func(w io.Writer, b []byte) error { return n.Show(ctx, c, w, b) }
				}
				return o.Show(ctx, func() ([]byte, error) { return n.One(ctx, c, plain[0]) }, WithNames(ctx, c, people))
			}
		}}
}

// One reads an object by its id.
func (n *Noun) One(ctx context.Context, c *client.Client, id string) ([]byte, error) {
	if n.Get == "" {
		in := n.within(ctx)
		if _, known := capability.Filters(capability.One(n.List))["id"]; known && object.WholeID.MatchString(id) {
			in = append(in, capability.Given{Name: "filter", Text: "id:" + id})
		}
		of := *n
		if n.Archived != "" {
			of.Query = n.Archived
		}
		rows, _, err := of.Rows(ctx, c, in, Everything)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			v, err := object.Decode(r)
			if row, ok := v.(map[string]any); err == nil && ok && n.ID(row) == id {
				return r, nil
			}
		}
		return nil, exit.NotFound(fmt.Sprintf("there is no %s %s", n.Name, id))
	}
	path, _, err := capability.Assemble(capability.One(n.Get), n.Address(n.Get, id))
	if err != nil {
		return nil, err
	}
	return c.Fetch(ctx, http.MethodGet, path, nil)
}

// within are the inputs of the list that has an object.
func (n *Noun) within(ctx context.Context) []capability.Given {
	if !n.PerRepo {
		return nil
	}
	in, err := InRepo(ctx, "", nil)
	if err != nil {
		return nil
	}
	return in
}

// Address are the inputs by which a capability is told which object is meant.
func (n *Noun) Address(asked, id string) []capability.Given {
	o := capability.One(asked)
	if owner, repo, both := strings.Cut(id, "/"); both && strings.Contains(o.Path, "{owner}") {
		return []capability.Given{{Name: "owner", Text: owner}, {Name: "repo", Text: repo}}
	}
	return []capability.Given{{Name: Placeholder(o.Path), Text: id}}
}

// Placeholder is the last input in a path, or "".
func Placeholder(path string) string {
	at := strings.LastIndexByte(path, '{')
	if at < 0 {
		return ""
	}
	name, _, _ := strings.Cut(path[at+1:], "}")
	return strings.TrimSuffix(name, "...")
}

// View writes what is known of an object: short members as facts, texts below them, lists
// of objects as tables. What the noun hides is in the other forms of the answer.
func (n *Noun) View(w io.Writer, b []byte) error {
	v, err := object.Decode(b)
	if err != nil {
		return err
	}
	row, ok := v.(map[string]any)
	if !ok {
		return (&output.Flags{}).Print(w, b)
	}
	n.Seen(n.ID(row))
	s := screen.Out()
	if label := object.Text(row[n.Label]); n.Label != "" && label != "" {
		fmt.Fprintln(w, s.Paint(terminal.Strong, client.Inert(label)))
	}
	members, err := object.Ordered(b)
	if err != nil {
		return err
	}
	if n.Plain != nil {
		n.Plain(row)
	}
	if err := writeMembers(w, s, members, row, append([]string{n.Label}, n.Hidden...), n.Tables, false); err != nil {
		return err
	}
	if n.Next != nil && n.ID(row) != "" {
		for i, line := range n.Next(row) {
			if i == 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, client.Inert(line))
		}
	}
	return nil
}

// long is the length from which a text is no fact of a line.
const long = 100

// labels are those of members whose names do not say what they are.
var labels = map[string]string{"report_md": "report from"}

// writeMembers writes members of an object. One within a list keeps its texts beside their names.
func writeMembers(w io.Writer, s terminal.Screen, members []string, row map[string]any, leaveOut []string, orders map[string][]string,
	within bool) error {
	now := time.Now()
	var facts []terminal.Fact
	type list struct {
		title string
		rows  []any
		order []string
	}
	var texts []string
	var tables []list
	for _, name := range members {
		if slices.Contains(leaveOut, name) {
			continue
		}
		v := row[name]
		label := cmp.Or(labels[name], strings.ReplaceAll(name, "_", " "))
		switch v := v.(type) {
		case nil:
			continue
		case string:
			if v == "" {
				continue
			}
			if len(v) > long && !within || strings.Contains(strings.TrimSpace(v), "\n") {
				texts = append(texts, name)
				continue
			}
			c := terminal.Cell{Text: v, Tone: terminal.ToneOf(v)}
			if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
				c.Text = terminal.When(now, at)
			}
			if is, found := strings.CutSuffix(name, "_usd"); found {
				if label = strings.ReplaceAll(is, "_", " "); money(v) {
					c.Text = "$" + v
				}
			}
			facts = append(facts, terminal.Fact{Label: label, Value: c})
		case []any:
			if len(v) == 0 {
				continue
			}
			if _, objects := v[0].(map[string]any); objects {
				tables = append(tables, list{label, v, orders[name]})
				continue
			}
			facts = append(facts, terminal.Fact{Label: label, Value: terminal.Cell{Text: object.Text(v)}})
		case map[string]any:
			for _, inner := range object.Names(v) {
				if slices.Contains(leaveOut, name+"."+inner) {
					continue
				}
				within := label + " " + strings.ReplaceAll(inner, "_", " ")
				if rows, _ := v[inner].([]any); len(rows) > 0 && object.Map(rows[0]) != nil {
					tables = append(tables, list{within, rows, nil})
					continue
				}
				text := object.Text(v[inner])
				if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
					text = terminal.When(now, at)
				}
				if text != "" {
					facts = append(facts, terminal.Fact{Label: within, Value: terminal.Cell{Text: text, Tone: terminal.ToneOf(text)}})
				}
			}
		default:
			facts = append(facts, terminal.Fact{Label: label, Value: terminal.Cell{Text: object.Text(v)}})
		}
	}
	if err := s.Facts(w, facts); err != nil {
		return err
	}
	for _, name := range texts {
		text, _ := row[name].(string)
		fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Faint, client.Inert(strings.ReplaceAll(name, "_", " "))))
		screen.Paragraph(w, text)
	}
	for _, t := range tables {
		fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Faint, client.Inert(t.title)))
		if err := Objects(w, s, t.rows, t.order, now); err != nil {
			return err
		}
	}
	return nil
}

// money tells whether a text is an amount, and not what stands for one.
func money(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// Objects writes a list of objects: as a table if the screen has room for all of it, if need be
// with the short ids by which each is found, else each by itself. order, if it is given, are the
// members that are shown.
func Objects(w io.Writer, s terminal.Screen, all []any, order []string, now time.Time) error {
	var heads []string
	for _, e := range all {
		row, _ := e.(map[string]any)
		for _, name := range object.Names(row) {
			if !slices.Contains(heads, name) && object.Text(row[name]) != "" && (order == nil || slices.Contains(order, name)) {
				heads = append(heads, name)
			}
		}
	}
	slices.SortStableFunc(heads, func(a, b string) int {
		if order != nil {
			return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
		}
		return cmp.Compare(place(a), place(b))
	})
	var columns []terminal.Column
	for _, h := range heads {
		columns = append(columns, terminal.Column{Flex: true,
			Head: strings.ToUpper(strings.ReplaceAll(strings.TrimSuffix(h, "_usd"), "_", " "))})
	}
	var cells [][]terminal.Cell
	whole := true
	for _, e := range all {
		row, _ := e.(map[string]any)
		var line []terminal.Cell
		for i, h := range heads {
			text := object.Text(row[h])
			whole = whole && !strings.Contains(strings.TrimSpace(text), "\n")
			c := terminal.Cell{Text: text, Tone: terminal.ToneOf(text)}
			if _, err := strconv.ParseFloat(text, 64); err == nil {
				columns[i].Right = true
				if strings.HasSuffix(h, "_usd") {
					c.Text = "$" + text
				}
			}
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				c.Text = terminal.Age(now, at)
			}
			line = append(line, c)
		}
		cells = append(cells, line)
	}
	if s.Width == 0 || whole && (s.Fits(columns, cells) || shorten(heads, cells) && s.Fits(columns, cells)) {
		return s.Table(w, columns, cells)
	}
	for i, e := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		row, _ := e.(map[string]any)
		if err := writeMembers(w, s, heads, row, nil, nil, true); err != nil {
			return err
		}
	}
	return nil
}

// shorten makes the ids of a table short; false if two of them would be the same, or there are none.
func shorten(heads []string, cells [][]terminal.Cell) bool {
	at := slices.Index(heads, "id")
	if at < 0 {
		return false
	}
	seen := map[string]bool{}
	for _, line := range cells {
		seen[object.Short(line[at].Text)] = true
	}
	if len(seen) < len(cells) {
		return false
	}
	for i := range cells {
		cells[i][at].Text = object.Short(cells[i][at].Text)
	}
	return true
}

// place is where a member of an object stands among the others: its id and name first, ids of others last.
func place(name string) int {
	switch {
	case name == "id":
		return 0
	case slices.Contains([]string{"name", "slug", "title", "login"}, name):
		return 1
	case strings.HasSuffix(name, "_id"):
		return 3
	}
	return 2
}

// PageAddress is the address of an object's page, or of the one that has all of its kind.
func (n *Noun) PageAddress(server, id string) string {
	switch {
	case n.Page == "":
		return ""
	case n.Alone:
		return server + "/ui/" + n.Page
	case n.Name == "repo":
		owner, repo, _ := strings.Cut(id, "/")
		return server + "/ui/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(repo)
	}
	return server + "/ui/" + n.Page + "/" + url.PathEscape(id)
}

// AddressOf is pageAddress for objects whose address their ids alone do not give.
func (n *Noun) AddressOf(ctx context.Context, id string) (string, error) {
	base, _ := signin.Server()
	if n.Page == "" || base == "" {
		return "", fmt.Errorf("a %s has no page of its own", n.Name)
	}
	if n.Name != "issue" && n.Name != "notification" {
		return n.PageAddress(base, id), nil
	}
	c, err := signin.Connect()
	if err != nil {
		return "", err
	}
	b, err := n.One(ctx, c, id)
	if err != nil {
		return "", err
	}
	v, _ := object.Decode(b)
	row := object.Map(v)
	if n.Name == "issue" {
		return Called("repo").PageAddress(base, object.Text(row["repo"])) + "/issues/" + url.PathEscape(id), nil
	}
	at := object.Text(row["url"])
	if strings.HasPrefix(at, "/") {
		at = base + at
	}
	if !strings.HasPrefix(at, base+"/") { // what it is about is on this server
		return n.PageAddress(base, id), nil
	}
	return at, nil
}
