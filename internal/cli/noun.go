package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// noun is a kind of object: how it is listed, shown, found and named. What is common to
// all nouns follows from it.
type noun struct {
	name  string
	list  string // the capability that lists it
	query string // of the list in any case
	// archived is what the list has to be asked for one that it leaves out otherwise.
	archived string
	get      string   // the capability that answers one; "": the list has all of it
	key      string   // the member that is its id; id when empty
	names    []string // members by which one is found besides
	label    string   // the member by which people tell one from another
	columns  []table.Column
	page     string             // the place of its page on the server: tasks of /ui/tasks/{id}
	first    string             // the command that makes the first one
	none     string             // what is said when there are none, if that is more than first
	perRepo  bool               // the list is one of a repository
	about    []capability.Given // inputs of the list: the object that it is about
	// everywhere is the list of those of all repositories, by which one is found.
	everywhere string
	// hidden are dotted names of members that the view leaves out: what is for programs, and
	// what next says in better words.
	hidden []string
	// tables are the members of the objects in a list of the view, in the order of a person.
	tables map[string][]string
	// block, if set, writes an object in several lines, in the place of a table on a terminal.
	block func(w io.Writer, row map[string]any)
	// below, if set, is what stands below the row of an object in a table on a terminal.
	below func(row map[string]any) string
	// alone is set where all objects have one page together.
	alone bool
	// plain, if set, changes an object for its view: names in the place of ids.
	plain func(row map[string]any)
	// next are the commands that an object asks for, for the end of its view.
	next func(row map[string]any) []string
	// show writes the view of an object in the place of view.
	show func(ctx context.Context, c *client.Client, w io.Writer, b []byte) error
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
	output.Flags
	all     bool
	limit   int
	repo    string
	filters map[string]*string
	others  map[string]*string
	flags   *flag.FlagSet
	skip    string // an input that is no flag
}

// usual is the number of rows of a list when nobody says how many.
const usual = 30

func (l *listing) add(fl *flag.FlagSet, n *noun) {
	o := capability.One(n.list)
	l.filters, l.others, l.flags = map[string]*string{}, map[string]*string{}, fl
	keys := capability.Filters(o)
	for _, key := range object.Sorted(keys) {
		doc := "only those whose " + strings.ReplaceAll(key, "_", " ") + " is `VALUE`"
		if len(keys[key]) > 0 {
			doc += ": " + strings.Join(keys[key], ", ")
		}
		if l.filters[key] = tree.Once(fl, key, doc); len(keys[key]) == 1 && keys[key][0] == "true" {
			fl.Lookup(key).NoOptDefVal = "true"
		}
	}
	for _, in := range o.Inputs() {
		if in.Name == l.skip {
			continue
		}
		switch in.Name {
		case "cursor", "per_page", "page", "limit", "owner", "filter":
		case "repo":
			if !n.perRepo {
				l.others[in.Name] = tree.Once(fl, "repo", in.Doc)
			}
		default:
			name := strings.ReplaceAll(in.Name, "_", "-")
			if l.others[in.Name] = tree.Once(fl, name, in.Doc); in.Kind == "true or false" {
				fl.Lookup(name).NoOptDefVal = "true"
			}
		}
	}
	if n.perRepo {
		fl.StringVar(&l.repo, "repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	}
	fl.BoolVar(&l.all, "all", false, "fetch all rows")
	fl.IntVarP(&l.limit, "limit", "L", usual, "fetch at most `N` rows")
	l.AddWatch(fl)
}

// inputs are those of the capability that the flags ask for.
func (l *listing) inputs(ctx context.Context, n *noun) (in []capability.Given, err error) {
	for _, key := range object.Sorted(l.filters) {
		if v := *l.filters[key]; v != "" {
			if v, err = meantBy(ctx, n, key, v); err != nil {
				return nil, err
			}
			in = append(in, capability.Given{Name: "filter", Text: key + ":" + v})
		}
	}
	for _, key := range object.Sorted(l.others) {
		if v := *l.others[key]; v != "" {
			in = append(in, capability.Given{Name: key, Text: v})
		}
	}
	in = append(in, n.about...)
	if n.perRepo {
		return inRepo(ctx, l.repo, in)
	}
	return in, nil
}

// meantBy is the value of a filter as the server has it, for what a person names an object by.
func meantBy(ctx context.Context, n *noun, key, word string) (string, error) {
	of := ""
	switch key {
	case "box", "pr", "task", "plan":
		of = key
	case "actor":
		if strings.Contains(word, ":") {
			return word, nil
		}
		id, err := nounCalled("member").Find(ctx, word)
		return "user:" + id, err
	case "object":
		if !number.MatchString(word) && !pageAt.MatchString(word) {
			return word, nil
		}
		id, err := nounCalled("pr").Find(ctx, word)
		if none := (exit.NotFound("")); errors.As(err, &none) && number.MatchString(word) { // issues have numbers as well
			if issue, err := nounCalled("issue").Find(ctx, word); err == nil {
				return issue, nil
			}
		}
		return id, err
	}
	if of == "" || of == n.name {
		return word, nil
	}
	return nounCalled(of).Find(ctx, word)
}

// inRepo adds the repository to the inputs: the one that is named, or else the one of the
// folder's remote.
func inRepo(ctx context.Context, name string, in []capability.Given) ([]capability.Given, error) {
	if name == "" {
		var err error
		if name, err = repoHere(ctx); err != nil {
			return nil, err
		}
	}
	owner, repo, both := strings.Cut(name, "/")
	if !both || owner == "" || repo == "" || strings.Contains(repo, "/") {
		return nil, exit.Misused("--repo has the form OWNER/NAME, not %q", name)
	}
	return append(in, capability.Given{Name: "owner", Text: owner}, capability.Given{Name: "repo", Text: repo}), nil
}

// rows fetches the rows of a list, at most most of them, and tells whether there are more.
func (n *noun) rows(ctx context.Context, c *client.Client, in []capability.Given, most int) (rows []json.RawMessage, more bool, err error) {
	o := capability.One(n.list)
	for _, pair := range strings.Split(n.query, "&") {
		name, value, ok := strings.Cut(pair, "=")
		if ok && !slices.ContainsFunc(in, func(g capability.Given) bool { return g.Name == name }) {
			in = append(in, capability.Given{Name: name, Text: value})
		}
	}
	has := o.Input()
	var pages client.Pages
	for number, cursor := 1, ""; ; number++ {
		inputs := slices.Clone(in)
		wanted := strconv.Itoa(min(max(most-len(rows), 1), 100))
		switch {
		case has["per_page"] != "":
			inputs = append(inputs, capability.Given{Name: "per_page", Text: wanted})
		case has["limit"] != "":
			inputs = append(inputs, capability.Given{Name: "limit", Text: wanted})
		}
		if cursor != "" {
			inputs = append(inputs, capability.Given{Name: "cursor", Text: cursor})
		} else if number > 1 {
			inputs = append(inputs, capability.Given{Name: "page", Text: strconv.Itoa(number)})
		}
		path, _, err := capability.Assemble(o, inputs)
		if err != nil {
			return nil, false, err
		}
		var p capability.Page
		if err := c.Call(ctx, http.MethodGet, path, nil, &p); err != nil {
			return nil, false, err
		}
		rows = append(rows, p.Data...)
		size := 0
		for _, row := range p.Data {
			size += len(row)
		}
		var following string
		if p.Next != nil && has["cursor"] != "" {
			cursor, more, following = *p.Next, true, *p.Next
		} else {
			more, following = len(p.Data) > 0 && (p.More || number < p.Pages), strconv.Itoa(number+1)
		}
		if !more || len(rows) >= most || has["cursor"] == "" && has["page"] == "" {
			if len(rows) > most {
				rows, more = rows[:most], true
			}
			return rows, more, nil
		}
		if err := pages.Next(following, size); err != nil {
			return nil, false, err
		}
	}
}

// everything is more rows than any list has.
const everything = 1 << 30

// listCommand is the command that lists a noun.
func (n *noun) listCommand(summary string, examples ...string) tree.Command {
	c := tree.Command{Words: n.name + " list", Summary: summary, Examples: examples, Values: map[string]tree.Values{}, Answers: n.list, Rows: true}
	if len(examples) == 0 {
		c.Examples = []string{"yardmaster " + n.name + " list", "yardmaster " + n.name + " list --all --json '*'"}
	}
	c.Define = func(fl *flag.FlagSet) tree.Action {
		n.addValues(c.Values)
		l := &listing{}
		l.add(fl, n)
		return func(ctx context.Context, _ []string) error { return n.runList(ctx, l) }
	}
	return c
}

// addValues adds those of the flags of a list.
func (n *noun) addValues(to map[string]tree.Values) {
	o := capability.One(n.list)
	for key, all := range capability.Filters(o) {
		switch {
		case len(all) == 0:
		case slices.Contains(o.Paging.Several, key):
			to[key] = tree.Listed(tree.Fixed(all...))
		default:
			to[key] = tree.Fixed(all...)
		}
	}
	for _, in := range o.Inputs() {
		if _, of, some := strings.Cut(in.Doc, "one of "); some {
			to[strings.ReplaceAll(in.Name, "_", "-")] = tree.Fixed(strings.Split(of, ", ")...)
		}
	}
}

// namedList is a list under other words than those of the noun.
func (n *noun) namedList(words, summary string) tree.Command {
	c := n.listCommand(summary, "yardmaster "+words)
	c.Words = words
	return c
}

func (n *noun) runList(ctx context.Context, l *listing) error {
	if err := l.Check(); err != nil {
		return err
	}
	most := l.limit
	switch {
	case l.all && l.flags.Changed("limit"):
		return exit.Misused("give --all or --limit, not both")
	case l.all:
		most = everything
	case most < 1:
		return exit.Misused("--limit takes 1 or more")
	}
	in, err := l.inputs(ctx, n)
	if err != nil {
		return err
	}
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	more, none := false, false
	err = l.Show(ctx, func() ([]byte, error) {
		var rows []json.RawMessage
		var err error
		if rows, more, err = n.rows(ctx, c, in, most); err != nil {
			return nil, err
		}
		if none = len(rows) == 0; none {
			return []byte("[]"), nil
		}
		return object.Encode(rows)
	}, withNames(ctx, c, func(w io.Writer, b []byte) error {
		if none && !l.Watch {
			return nil // it is said below
		}
		return n.people(w, b)
	}))
	if err != nil || l.ForPrograms() {
		return err
	}
	tell := func(line string) { screen.Wrapped(os.Stderr, screen.Out(), "", line) }
	switch {
	case none && slices.ContainsFunc(in, func(g capability.Given) bool {
		return g.Name != "owner" && g.Name != "repo" && !slices.Contains(n.about, g)
	}):
		tell("None is like that.")
	case none && n.none != "":
		tell(n.none)
	case none && n.first != "":
		tell("There are none yet: " + n.first)
	case none:
		tell("There are none.")
	case more:
		tell("There are more: --all fetches them, --limit N that many.")
	}
	return nil
}

// people writes rows as a table.
func (n *noun) people(w io.Writer, b []byte) error {
	v, err := object.Decode(b)
	if err != nil {
		return err
	}
	all, _ := v.([]any)
	columns, cells := table.Of(n.columns, all)
	var ids []string
	for _, e := range all {
		if row, ok := e.(map[string]any); ok {
			ids = append(ids, n.id(row))
		}
	}
	table.Unique(cells, n.columns, ids)
	n.heard(ids)
	if n.block != nil && screen.Out().Width > 0 {
		for i, e := range all {
			if i > 0 {
				fmt.Fprintln(w)
			}
			n.block(w, object.Map(e))
		}
		return nil
	}
	if n.below == nil || screen.Out().Width == 0 {
		return screen.Out().Table(w, columns, cells)
	}
	var table strings.Builder
	if err := screen.Out().Table(&table, columns, cells); err != nil {
		return err
	}
	at := -1 // of the row; the first line has the heads
	for line := range strings.Lines(table.String()) {
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		if at++; at > 0 {
			if text := n.below(object.Map(all[at-1])); text != "" {
				if _, err := fmt.Fprintln(w, "  "+client.Inert(text)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
