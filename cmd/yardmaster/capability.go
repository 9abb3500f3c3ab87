package main

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"yardmaster/internal/app"
	"yardmaster/internal/terminal"
)

// ops are the capabilities by their ids.
var ops = sync.OnceValue(func() map[string]*app.Op {
	all := app.Ops()
	m := make(map[string]*app.Op, len(all))
	for i := range all {
		m[all[i].ID] = &all[i]
	}
	return m
})

// rooms are the domains that have the capabilities of a group, where they are not in the
// one of its name alone.
var rooms = map[string][]string{
	"account":                {"oss"},
	"billing":                {"modelkey", "budget"},
	"config":                 {"prompt"},
	"builtin_dashboard_sync": {"dashboard"},
	"email_route":            {"emailroute"},
	"integration":            {"tracker", "source"},
	"notification":           {"webhook", "notification"},
	"org_sso":                {"sso"},
	"plan":                   {"plan", "budget"},
	"pr":                     {"pull", "talk", "approval", "mergequeue"},
	"project":                {"repo", "creation", "onboarding", "overview", "task"},
	"project_secret":         {"vault"},
	"review":                 {"review", "talk"},
	"secret":                 {"vault"},
	"self":                   {"hosttoken", "box"},
	"task":                   {"task", "run", "queue", "budget"},
}

// one is the capability of an id; nil if there is none. The domains that may have it are
// looked at first, because to describe all of them takes longer than a call.
func one(id string) *app.Op {
	known.Lock()
	defer known.Unlock()
	if known.ops == nil {
		known.ops, known.rooms = map[string]*app.Op{}, map[string]bool{}
	}
	group, _, _ := strings.Cut(id, ".")
	for _, room := range append(slices.Clone(rooms[group]), group) {
		if known.ops[id] == nil && !known.rooms[room] {
			known.rooms[room] = true
			all := app.OpsIn(room)
			for i := range all {
				known.ops[all[i].ID] = &all[i]
			}
		}
	}
	if o := known.ops[id]; o != nil {
		return o
	}
	return ops()[id]
}

// known are the capabilities that were looked at.
var known struct {
	sync.Mutex
	ops   map[string]*app.Op
	rooms map[string]bool
}

// given is an input of a call: a text as a person wrote it, or JSON.
type given struct {
	name, text string
	json       bool // text is JSON
	verbatim   bool // text is a text, whatever it looks like
}

// parseGiven reads name=value, name:=JSON, name=@FILE and name=- .
func parseGiven(word string) (g given, err error) {
	name, value, ok := strings.Cut(word, "=")
	if !ok || name == "" {
		return g, misused("%q has not the form name=value", word)
	}
	g.name, g.json = strings.CutSuffix(name, ":")
	path, file := strings.CutPrefix(value, "@")
	if value == "-" {
		path = "-"
	} else if !file {
		g.text = value
		return g, nil
	}
	b, err := local(terminal.Read(path))
	if err != nil {
		return g, err
	}
	g.text, g.verbatim = string(b), !g.json
	return g, nil
}

// assemble puts inputs where the row says: into the path, the query and the body. A value
// of a text input is sent unchanged; any other is JSON, or else a list of words or pairs
// where the input is one, or else text.
func assemble(o *app.Op, inputs []given) (path string, body any, err error) {
	path = o.Path
	query, members := url.Values{}, map[string]any{}
	where, kinds := o.Input(), o.Kinds()
	for _, in := range inputs {
		switch where[in.name] {
		case "path":
			path = strings.NewReplacer("{"+in.name+"}", url.PathEscape(in.text), "{"+in.name+"...}", in.text).Replace(path)
			delete(where, in.name)
		case "query":
			query.Add(in.name, in.text)
		case "body":
			v, err := in.value(kinds[in.name])
			if err != nil {
				return "", nil, err
			}
			members[in.name] = v
		default:
			if words := near(in.name, sorted(o.Input())); len(words) > 0 {
				return "", nil, misused("%s has no input %q; did you mean %s=?", o.ID, in.name, strings.Join(words, "= or "))
			}
			return "", nil, misused("%s has no input %q; `yardmaster call %s -h` lists them", o.ID, in.name, o.ID)
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
	takesBody := false
	for _, where := range o.Input() {
		takesBody = takesBody || where == "body"
	}
	if len(members) > 0 || takesBody { // {} is not the same as no body: see op.Bodied
		body = members
	}
	return path, body, nil
}

// value is the input as a member of the body.
func (g given) value(kind reflect.Type) (any, error) {
	var v any
	switch {
	case g.json:
		if err := json.Unmarshal([]byte(g.text), &v); err != nil {
			return nil, misused("%s:= takes JSON: %v", g.name, err)
		}
		return v, nil
	case g.verbatim && isText(kind), isText(kind) && g.text != "null":
		return g.text, nil
	case json.Unmarshal([]byte(g.text), &v) == nil:
		return v, nil
	}
	for kind != nil && kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case kind == nil:
	case kind.Kind() == reflect.Slice && isText(kind.Elem()):
		words := []string{}
		for w := range strings.SplitSeq(g.text, ",") {
			if w = strings.TrimSpace(w); w != "" {
				words = append(words, w)
			}
		}
		return words, nil
	case kind.Kind() == reflect.Map && strings.Contains(g.text, "="):
		pairs := map[string]string{}
		for pair := range strings.SplitSeq(g.text, ",") {
			name, value, _ := strings.Cut(pair, "=")
			pairs[strings.TrimSpace(name)] = value
		}
		return pairs, nil
	case kind.Kind() >= reflect.Int && kind.Kind() <= reflect.Float64:
		return nil, misused("%s takes a number, not %q", g.name, g.text)
	}
	return g.text, nil
}

func isText(t reflect.Type) bool {
	return t != nil && (t.Kind() == reflect.String || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String)
}

// filters are the keys of the input filter of a list, each with its values, if they are
// few. The doc of the input is "key:value, of KEY (VALUE, VALUE…); KEY …".
func filters(o *app.Op) map[string][]string {
	out := map[string][]string{}
	for _, in := range o.Inputs() {
		if in.Name != "filter" {
			continue
		}
		_, of, _ := strings.Cut(in.Doc, "key:value, of ")
		for part := range strings.SplitSeq(of, "; ") {
			key, rest, some := strings.Cut(part, " (")
			if key = strings.TrimSpace(key); key == "" || strings.Contains(key, " ") {
				continue
			}
			out[key] = nil
			if values, _, ended := strings.Cut(rest, ")"); some && ended {
				out[key] = strings.Split(values, ", ")
			}
		}
	}
	return out
}

// page is what the command line knows of an answer that lists something.
type page struct {
	Data  []json.RawMessage `json:"data"`
	Next  *string           `json:"next_cursor"`
	Pages int               `json:"pages"`
	More  bool              `json:"has_more"`
}

// fieldsOf are the members of what a command answers, for --json.
func fieldsOf(c *cobra.Command) []string {
	words := strings.TrimPrefix(c.CommandPath(), "yardmaster ")
	for _, of := range commands() {
		if of.words != words {
			continue
		}
		if of.members != nil {
			return of.members
		}
		id := of.answers
		switch {
		case id == "" && of.does != nil:
			id = of.does.op
		case words == "call":
			id = c.Flags().Arg(0)
		}
		if one(id) == nil || one(id).Output() == nil {
			return nil
		}
		if of.rows {
			return members(rowOf(one(id).Output()))
		}
		return members(one(id).Output())
	}
	return nil
}

// rowOf is the type of the rows of an answer that lists something; that of the answer if it lists nothing.
func rowOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		if data, ok := t.FieldByName("Data"); ok && data.Type.Kind() == reflect.Slice {
			return data.Type.Elem()
		}
	}
	return t
}

// enumOf are the values that a member of a type may have, if they are few.
func enumOf(t reflect.Type, name string) []string {
	for _, f := range reflect.VisibleFields(t) {
		if of, _, _ := strings.Cut(f.Tag.Get("json"), ","); of == name && f.Tag.Get("enum") != "" {
			return strings.Split(f.Tag.Get("enum"), ",")
		}
	}
	return nil
}

// members are the names of a type's members in JSON.
func members(t reflect.Type) (all []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.IsExported() {
			all = append(all, name)
		}
	}
	return all
}
