// Package noun has the kinds of objects as data, and what is common to all: lists, views, and how one is named,
// found, picked and completed.
package noun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
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
	"yardmaster/internal/cli/table"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// Noun is a kind of object: how it is listed, shown, found and named. What is common to
// all nouns follows from it.
type Noun struct {
	Name  string
	List  string // the capability that lists it
	Query string // of the list in any case
	// Archived is what the list has to be asked for one that it leaves out otherwise.
	Archived string
	Get      string   // the capability that answers one; "": the list has all of it
	Key      string   // the member that is its id; id when empty
	Names    []string // members by which one is found besides
	Label    string   // the member by which people tell one from another
	Columns  []table.Column
	Page     string             // the place of its page on the server: tasks of /ui/tasks/{id}
	First    string             // the command that makes the first one
	None     string             // what is said when there are none, if that is more than first
	PerRepo  bool               // the list is one of a repository
	About    []capability.Given // inputs of the list: the object that it is about
	// Everywhere is the list of those of all repositories, by which one is found.
	Everywhere string
	// Hidden are dotted names of members that the view leaves out: what is for programs, and
	// what Next says in better words.
	Hidden []string
	// Tables are the members of the objects in a list of the view, in the order of a person.
	Tables map[string][]string
	// Block, if set, writes an object in several lines, in the place of a table on a terminal.
	Block func(w io.Writer, row map[string]any)
	// Below, if set, is what stands below the row of an object in a table on a terminal.
	Below func(row map[string]any) string
	// Alone is set where all objects have one page together.
	Alone bool
	// Plain, if set, changes an object for its view: names in the place of ids.
	Plain func(row map[string]any)
	// Next are the commands that an object asks for, for the end of its view.
	Next func(row map[string]any) []string
	// show writes the view of an object in the place of view.
	Show func(ctx context.Context, c *client.Client, w io.Writer, b []byte) error
}

// ID is the id of an object, by its members; "" if it has none.
func (n *Noun) ID(row map[string]any) string {
	key := n.Key
	if key == "" {
		key = "id"
	}
	text, _ := row[key].(string)
	return text
}

// Listing are the flags of a list.
type Listing struct {
	output.Flags
	all     bool
	limit   int
	Repo    string
	mine    bool
	Filters map[string]*string
	Others  map[string]*string
	flags   *flag.FlagSet
	Skip    string // an input that is no flag
}

// Usual is the number of rows of a list when nobody says how many.
const Usual = 30

// Add declares the flags of the list of a noun.
func (l *Listing) Add(fl *flag.FlagSet, n *Noun) {
	o := capability.One(n.List)
	l.Filters, l.Others, l.flags = map[string]*string{}, map[string]*string{}, fl
	keys := capability.Filters(o)
	for _, key := range object.Sorted(keys) {
		name := strings.TrimSuffix(key, "_id") // an object is named by more than its id
		doc := cmp.Or(filterDocs[key], "only those whose "+strings.ReplaceAll(name, "_", " ")+" is `VALUE`")
		if len(keys[key]) > 0 {
			doc += ": " + strings.Join(keys[key], ", ")
		}
		if l.Filters[key] = tree.Once(fl, name, doc); len(keys[key]) == 1 && keys[key][0] == "true" {
			fl.Lookup(name).NoOptDefVal = "true"
		}
	}
	if _, known := keys["person"]; known {
		fl.BoolVar(&l.mine, "mine", false, "only yours: --person me")
	}
	for _, in := range o.Inputs() {
		if in.Name == l.Skip {
			continue
		}
		switch in.Name {
		case "cursor", "per_page", "page", "limit", "owner", "filter":
		case "repo":
			if !n.PerRepo {
				l.Others[in.Name] = tree.Once(fl, "repo", in.Doc)
			}
		default:
			name := strings.ReplaceAll(in.Name, "_", "-")
			if l.Others[in.Name] = tree.Once(fl, name, in.Doc); in.Kind == "true or false" {
				fl.Lookup(name).NoOptDefVal = "true"
			}
		}
	}
	if n.PerRepo {
		fl.StringVar(&l.Repo, "repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	}
	fl.BoolVar(&l.all, "all", false, "fetch all rows")
	fl.IntVarP(&l.limit, "limit", "L", Usual, "fetch at most `N` rows")
	l.AddWatch(fl)
}

// inputs are those of the capability that the flags ask for.
func (l *Listing) inputs(ctx context.Context, n *Noun) (in []capability.Given, err error) {
	if l.mine {
		if *l.Filters["person"] != "" {
			return nil, exit.Misused("give --mine or --person, not both")
		}
		in = append(in, capability.Given{Name: "filter", Text: "person:me"})
	}
	for _, key := range object.Sorted(l.Filters) {
		if v := *l.Filters[key]; v != "" {
			if v, err = meantBy(ctx, n, key, v); err != nil {
				return nil, err
			}
			in = append(in, capability.Given{Name: "filter", Text: key + ":" + v})
		}
	}
	for _, key := range object.Sorted(l.Others) {
		if v := *l.Others[key]; v != "" {
			in = append(in, capability.Given{Name: key, Text: v})
		}
	}
	in = append(in, n.About...)
	if n.PerRepo {
		return InRepo(ctx, l.Repo, in)
	}
	return in, nil
}

// filterDocs are the words of filters that are no member of the rows.
var filterDocs = map[string]string{
	"person": "only those of the person of that `LOGIN`, or me",
	"since":  "only those made then or later: a `TIME` such as 2d or 10m ago, a day, or a whole time",
	"before": "only those made before: a `TIME` such as 2d or 10m ago, a day, or a whole time",
}

// MomentOf is a time as the server takes it: a length of time is one before now.
func MomentOf(flag, word string) (string, error) {
	length := word
	if n := len(word) - 1; n > 0 && (word[n] == 'd' || word[n] == 'w') {
		if days, err := strconv.ParseFloat(word[:n], 64); err == nil {
			length = fmt.Sprintf("%gh", days*24*map[byte]float64{'d': 1, 'w': 7}[word[n]])
		}
	}
	if ago, err := time.ParseDuration(length); err == nil && ago > 0 {
		return time.Now().Add(-ago).UTC().Format(time.RFC3339), nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if _, err := time.Parse(form, word); err == nil {
			return word, nil
		}
	}
	return "", exit.Misused("--%s takes a length of time such as 2d or 10m, a day such as 2026-11-02, or a time, not %q", flag, word)
}

// meantBy is the value of a filter as the server has it, for what a person names an object by.
func meantBy(ctx context.Context, n *Noun, key, word string) (string, error) {
	of := ""
	switch key {
	case "box", "pr", "task", "plan":
		of = key
	case "task_id":
		of = "task"
	case "since", "before":
		return MomentOf(key, word)
	case "person":
		if word == "me" {
			return word, nil
		}
		of = "member"
	case "repo_id":
		return repoID(ctx, word)
	case "actor":
		if strings.Contains(word, ":") {
			return word, nil
		}
		id, err := Called("member").Find(ctx, word)
		return "user:" + id, err
	case "object":
		if !number.MatchString(word) && !pageAt.MatchString(word) {
			return word, nil
		}
		id, err := Called("pr").Find(ctx, word)
		if none := (exit.NotFound("")); errors.As(err, &none) && number.MatchString(word) { // issues have numbers as well
			if issue, err := Called("issue").Find(ctx, word); err == nil {
				return issue, nil
			}
		}
		return id, err
	}
	if of == "" || of == n.Name {
		return word, nil
	}
	return Called(of).Find(ctx, word)
}

// repoID is the id of a repository that is named by OWNER/NAME.
func repoID(ctx context.Context, name string) (string, error) {
	if object.WholeID.MatchString(name) {
		return name, nil
	}
	in, err := InRepo(ctx, name, nil)
	if err != nil {
		return "", err
	}
	c, err := signin.Connect()
	if err != nil {
		return "", err
	}
	return IDOfRepo(ctx, c, in[0].Text, in[1].Text)
}

// IDOfRepo is the id of a repository.
func IDOfRepo(ctx context.Context, c *client.Client, owner, name string) (string, error) {
	var r struct {
		ID string `json:"id"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/repos/"+url.PathEscape(owner)+"/"+url.PathEscape(name), nil, &r)
	return r.ID, err
}

// InRepo adds the repository to the inputs: the one that is named, or else the one of the
// folder's remote.
func InRepo(ctx context.Context, name string, in []capability.Given) ([]capability.Given, error) {
	if name == "" {
		var err error
		if name, err = RepoHere(ctx); err != nil {
			return nil, err
		}
	}
	owner, repo, both := strings.Cut(name, "/")
	if !both || owner == "" || repo == "" || strings.Contains(repo, "/") {
		return nil, exit.Misused("--repo has the form OWNER/NAME, not %q", name)
	}
	return append(in, capability.Given{Name: "owner", Text: owner}, capability.Given{Name: "repo", Text: repo}), nil
}

// Rows fetches the rows of a list, at most most of them, and tells whether there are more.
func (n *Noun) Rows(ctx context.Context, c *client.Client, in []capability.Given, most int) (rows []json.RawMessage, more bool, err error) {
	o := capability.One(n.List)
	for _, pair := range strings.Split(n.Query, "&") {
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

// Everything is more rows than any list has.
const Everything = 1 << 30

// ListCommand is the command that lists a noun.
func (n *Noun) ListCommand(summary string, examples ...string) tree.Command {
	c := tree.Command{Words: n.Name + " list", Summary: summary, Examples: examples, Values: map[string]tree.Values{}, Answers: n.List,
		Rows: true}
	if len(examples) == 0 {
		c.Examples = []string{"yardmaster " + n.Name + " list", "yardmaster " + n.Name + " list --all --json '*'"}
	}
	c.Define = func(fl *flag.FlagSet) tree.Action {
		n.AddValues(c.Values)
		l := &Listing{}
		l.Add(fl, n)
		return func(ctx context.Context, _ []string) error { return n.RunList(ctx, l) }
	}
	return c
}

// AddValues adds those of the flags of a list.
func (n *Noun) AddValues(to map[string]tree.Values) {
	o := capability.One(n.List)
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
		if len(in.Values) > 0 {
			to[strings.ReplaceAll(in.Name, "_", "-")] = tree.Fixed(in.Values...)
		}
	}
}

// NamedList is a list under other words than those of the noun.
func (n *Noun) NamedList(words, summary string) tree.Command {
	c := n.ListCommand(summary, "yardmaster "+words)
	c.Words = words
	return c
}

// RunList carries out a list with the flags that were given.
func (n *Noun) RunList(ctx context.Context, l *Listing) error {
	if err := l.Check(); err != nil {
		return err
	}
	most := l.limit
	switch {
	case l.all && l.flags.Changed("limit"):
		return exit.Misused("give --all or --limit, not both")
	case l.all:
		most = Everything
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
		if rows, more, err = n.Rows(ctx, c, in, most); err != nil {
			return nil, err
		}
		if none = len(rows) == 0; none {
			return []byte("[]"), nil
		}
		return object.Encode(rows)
	}, WithNames(ctx, c, func(w io.Writer, b []byte) error {
		if none && !l.Watch {
			return nil // it is said below
		}
		return n.People(w, b)
	}))
	if err != nil || l.ForPrograms() {
		return err
	}
	tell := func(line string) { screen.Wrapped(os.Stderr, screen.Out(), "", line) }
	switch {
	case none && slices.ContainsFunc(in, func(g capability.Given) bool {
		return g.Name != "owner" && g.Name != "repo" && !slices.Contains(n.About, g)
	}):
		tell("None is like that.")
	case none && n.None != "":
		tell(n.None)
	case none && n.First != "":
		tell("There are none yet: " + n.First)
	case none:
		tell("There are none.")
	case more:
		tell("There are more: --all fetches them, --limit N that many.")
	}
	return nil
}

// People writes rows as a table.
func (n *Noun) People(w io.Writer, b []byte) error {
	v, err := object.Decode(b)
	if err != nil {
		return err
	}
	all, _ := v.([]any)
	columns, cells := table.Of(n.Columns, all)
	var ids []string
	for _, e := range all {
		if row, ok := e.(map[string]any); ok {
			ids = append(ids, n.ID(row))
		}
	}
	table.Unique(cells, n.Columns, ids)
	n.heard(ids)
	if n.Block != nil && screen.Out().Width > 0 {
		for i, e := range all {
			if i > 0 {
				fmt.Fprintln(w)
			}
			n.Block(w, object.Map(e))
		}
		return nil
	}
	if n.Below == nil || screen.Out().Width == 0 {
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
			if text := n.Below(object.Map(all[at-1])); text != "" {
				if _, err := fmt.Fprintln(w, "  "+client.Inert(text)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
