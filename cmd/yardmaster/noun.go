package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// noun is a kind of object: how it is listed, shown, found and named. What is common to
// all nouns follows from it.
type noun struct {
	name    string
	list    string   // the capability that lists it
	query   string   // of the list in any case
	get     string   // the capability that answers one; "": the list has all of it
	key     string   // the member that is its id; id when empty
	names   []string // members by which one is found besides
	label   string   // the member by which people tell one from another
	columns []column
	page    string // the place of its page on the server: tasks of /ui/tasks/{id}
	first   string // the command that makes the first one
	none    string // what is said when there are none, and no command makes one
	perRepo bool   // the list is one of a repository
	// everywhere is the list of those of all repositories, by which one is found.
	everywhere string
	// hidden are dotted names of members that the view leaves out: what is for programs, and
	// what next says in better words.
	hidden []string
	// plain, if set, changes an object for its view: names in the place of ids.
	plain func(row map[string]any)
	// next are the commands that an object asks for, for the end of its view.
	next func(row map[string]any) []string
	// show writes the view of an object in the place of view.
	show func(ctx context.Context, c *client.Client, w io.Writer, b []byte) error
}

// column is a column of a list.
type column struct {
	head string
	at   string // the dotted name of the member; of several with | between, the first that is there
	as   form
}

// form is how a member is written for people.
type form int

const (
	asText  form = iota
	asTitle      // text that gives way where there is no room
	asID
	asState
	asAge
	asUSD
	asSHA
	asCount
	asNumber
	asHolds // why a task waits
	asPull  // the repository and number of a pull request
	asSpan  // a number of seconds
	asSize  // how many lines change
)

// text is a member in its form.
func (c column) cell(row map[string]any, now time.Time) terminal.Cell {
	var v any
	for at := range strings.SplitSeq(c.at, "|") {
		if v, _ = lookup(row, at); v != nil {
			break
		}
	}
	if c.as == asPull {
		return terminal.Cell{Text: plainText(row["repo"]) + "#" + plainText(row["number"])}
	}
	return cell(v, c.as, now)
}

func cell(v any, as form, now time.Time) terminal.Cell {
	text := plainText(v)
	switch as {
	case asID:
		if screen().Width > 0 {
			text = short(text)
		}
	case asState:
		return terminal.Cell{Text: strings.ReplaceAll(text, "_", " "), Tone: terminal.ToneOf(text)}
	case asAge:
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			text = terminal.Age(now, at)
		}
		return terminal.Cell{Text: text, Tone: terminal.Faint}
	case asUSD:
		if text != "" {
			text = "$" + text
		}
	case asHolds:
		holds, _ := v.([]any)
		var reasons []string
		for _, h := range holds {
			hold, _ := h.(map[string]any)
			reasons = append(reasons, strings.ReplaceAll(plainText(hold["reason"]), "_", " "))
		}
		return terminal.Cell{Text: strings.Join(reasons, ", "), Tone: terminal.Ask}
	case asSize:
		if size, ok := v.(map[string]any); ok {
			text = "+" + plainText(size["additions"]) + " −" + plainText(size["deletions"])
		}
	case asSpan:
		text = spanText(v)
	case asSHA:
		text = fmt.Sprintf("%.10s", text)
	case asCount:
		if all, ok := v.([]any); ok {
			text = strconv.Itoa(len(all))
		}
	}
	return terminal.Cell{Text: text}
}

// spanText is a number of seconds with its unit; the text of anything else.
func spanText(v any) string {
	text := plainText(v)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n < math.MaxInt64/int64(time.Second) {
		return terminal.Span(time.Duration(n) * time.Second)
	}
	return text
}

// plainText is a value of JSON in words.
func plainText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		var words []string
		for _, e := range v {
			words = append(words, plainText(e))
		}
		return strings.Join(words, ", ")
	case map[string]any:
		var words []string
		for _, name := range names(v) {
			if text := plainText(v[name]); text != "" {
				words = append(words, name+"="+text)
			}
		}
		return strings.Join(words, " ")
	}
	return fmt.Sprint(v)
}

func (n *noun) id(row map[string]any) string {
	key := n.key
	if key == "" {
		key = "id"
	}
	text, _ := row[key].(string)
	return text
}

// listing are the flags of a list.
type listing struct {
	output
	all     bool
	limit   int
	repo    string
	filters map[string]*string
	others  map[string]*string
}

// usual is the number of rows of a list when nobody says how many.
const usual = 30

func (l *listing) add(fl *flag.FlagSet, n *noun) {
	o := one(n.list)
	l.filters, l.others = map[string]*string{}, map[string]*string{}
	keys := filters(o)
	for _, key := range sorted(keys) {
		doc := "only those whose " + strings.ReplaceAll(key, "_", " ") + " is `VALUE`"
		if len(keys[key]) > 0 {
			doc += ": " + strings.Join(keys[key], ", ")
		}
		l.filters[key] = fl.String(key, "", doc)
	}
	for _, in := range o.Inputs() {
		switch in.Name {
		case "cursor", "per_page", "page", "limit", "owner", "filter":
		case "repo":
			if !n.perRepo {
				l.others[in.Name] = fl.String("repo", "", in.Doc)
			}
		default:
			name := strings.ReplaceAll(in.Name, "_", "-")
			if l.others[in.Name] = fl.String(name, "", in.Doc); in.Kind == "true or false" {
				fl.Lookup(name).NoOptDefVal = "true"
			}
		}
	}
	if n.perRepo {
		fl.StringVar(&l.repo, "repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	}
	fl.BoolVar(&l.all, "all", false, "fetch all rows")
	fl.IntVarP(&l.limit, "limit", "L", usual, "fetch at most `N` rows")
	l.addWatch(fl)
}

func sorted[T any](m map[string]T) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// inputs are those of the capability that the flags ask for.
func (l *listing) inputs(ctx context.Context, n *noun) (in []given, err error) {
	for _, key := range sorted(l.filters) {
		if v := *l.filters[key]; v != "" {
			in = append(in, given{name: "filter", text: key + ":" + v})
		}
	}
	for _, key := range sorted(l.others) {
		if v := *l.others[key]; v != "" {
			in = append(in, given{name: key, text: v})
		}
	}
	if n.perRepo {
		return inRepo(ctx, l.repo, in)
	}
	return in, nil
}

// inRepo adds the repository to the inputs: the one that is named, or else the one of the
// folder's remote.
func inRepo(ctx context.Context, name string, in []given) ([]given, error) {
	if name == "" {
		var err error
		if name, err = repoHere(ctx); err != nil {
			return nil, err
		}
	}
	owner, repo, both := strings.Cut(name, "/")
	if !both || owner == "" || repo == "" || strings.Contains(repo, "/") {
		return nil, misused("--repo has the form OWNER/NAME, not %q", name)
	}
	return append(in, given{name: "owner", text: owner}, given{name: "repo", text: repo}), nil
}

// rows fetches the rows of a list, at most most of them, and tells whether there are more.
func (n *noun) rows(ctx context.Context, c *client.Client, in []given, most int) (rows []json.RawMessage, more bool, err error) {
	o := one(n.list)
	for _, pair := range strings.Split(n.query, "&") {
		name, value, ok := strings.Cut(pair, "=")
		if ok && !slices.ContainsFunc(in, func(g given) bool { return g.name == name }) {
			in = append(in, given{name: name, text: value})
		}
	}
	has := o.Input()
	seen := map[string]bool{}
	for number, cursor := 1, ""; ; number++ {
		inputs := slices.Clone(in)
		size := strconv.Itoa(min(max(most-len(rows), 1), 100))
		switch {
		case has["per_page"] != "":
			inputs = append(inputs, given{name: "per_page", text: size})
		case has["limit"] != "":
			inputs = append(inputs, given{name: "limit", text: size})
		}
		if cursor != "" {
			inputs = append(inputs, given{name: "cursor", text: cursor})
		} else if number > 1 {
			inputs = append(inputs, given{name: "page", text: strconv.Itoa(number)})
		}
		path, _, err := assemble(o, inputs)
		if err != nil {
			return nil, false, err
		}
		var p page
		if err := c.Patient(ctx, http.MethodGet, path, &p); err != nil {
			return nil, false, err
		}
		rows = append(rows, p.Data...)
		switch {
		case p.Next != nil && has["cursor"] != "":
			if seen[*p.Next] {
				return nil, false, client.ErrCircle
			}
			cursor, more = *p.Next, true
			seen[cursor] = true
		default:
			more = len(p.Data) > 0 && (p.More || number < p.Pages)
		}
		if !more || len(rows) >= most || has["cursor"] == "" && has["page"] == "" {
			if len(rows) > most {
				rows, more = rows[:most], true
			}
			return rows, more, nil
		}
	}
}

// everything is more rows than any list has.
const everything = 1 << 30

// listCommand is the command that lists a noun.
func (n *noun) listCommand(summary string, examples ...string) command {
	c := command{words: n.name + " list", summary: summary, examples: examples, values: map[string]values{}}
	if len(examples) == 0 {
		c.examples = []string{"yardmaster " + n.name + " list", "yardmaster " + n.name + " list --all --json '*'"}
	}
	c.define = func(fl *flag.FlagSet) action {
		for key, all := range filters(one(n.list)) {
			if len(all) > 0 {
				c.values[key] = fixed(all...)
			}
		}
		for _, in := range one(n.list).Inputs() {
			if _, of, some := strings.Cut(in.Doc, "one of "); some {
				c.values[in.Name] = fixed(strings.Split(of, ", ")...)
			}
		}
		l := &listing{}
		l.add(fl, n)
		return func(ctx context.Context, _ []string) error { return n.runList(ctx, l) }
	}
	return c
}

// namedList is a list under other words than those of the noun.
func (n *noun) namedList(words, summary string) command {
	c := n.listCommand(summary, "yardmaster "+words)
	c.words = words
	return c
}

func (n *noun) runList(ctx context.Context, l *listing) error {
	if err := l.check(); err != nil {
		return err
	}
	most := l.limit
	switch {
	case l.all:
		most = everything
	case most < 1:
		return misused("--limit takes 1 or more")
	}
	in, err := l.inputs(ctx, n)
	if err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	more, none := false, false
	err = l.show(ctx, func() ([]byte, error) {
		var rows []json.RawMessage
		var err error
		if rows, more, err = n.rows(ctx, c, in, most); err != nil {
			return nil, err
		}
		if none = len(rows) == 0; none {
			return []byte("[]"), nil
		}
		return encoded(rows)
	}, withLogins(ctx, c, n.people))
	if err != nil || l.forPrograms() {
		return err
	}
	switch {
	case none && slices.ContainsFunc(in, func(g given) bool { return g.name != "owner" && g.name != "repo" }):
		fmt.Fprintln(os.Stderr, "None is like that.")
	case none && n.first != "":
		fmt.Fprintf(os.Stderr, "There are none yet: %s\n", n.first)
	case none && n.none != "":
		fmt.Fprintln(os.Stderr, n.none)
	case none:
		fmt.Fprintln(os.Stderr, "There are none.")
	case more:
		fmt.Fprintf(os.Stderr, "There are more: --all fetches them, --limit N that many.\n")
	}
	return nil
}

// people writes rows as a table.
func (n *noun) people(w io.Writer, b []byte) error {
	v, err := decoded(b)
	if err != nil {
		return err
	}
	now := time.Now()
	var rows []map[string]any
	all, _ := v.([]any)
	for _, e := range all {
		if row, ok := e.(map[string]any); ok {
			rows = append(rows, row)
		}
	}
	columns := make([]terminal.Column, len(n.columns))
	for i, c := range n.columns {
		columns[i] = terminal.Column{Head: c.head, Flex: c.as == asTitle,
			Right: c.as == asUSD || c.as == asCount || c.as == asNumber || c.as == asSpan || c.as == asSize}
	}
	var cells [][]terminal.Cell
	var ids []string
	for _, row := range rows {
		var line []terminal.Cell
		for _, c := range n.columns {
			line = append(line, c.cell(row, now))
		}
		cells = append(cells, line)
		ids = append(ids, n.id(row))
	}
	unique(cells, n.columns, ids)
	n.heard(ids)
	return screen().Table(w, columns, cells)
}
