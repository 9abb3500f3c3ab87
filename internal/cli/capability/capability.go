// Package capability finds the capabilities of the API and puts what a person wrote into a call of one.
package capability

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/terminal"
)

// All are the capabilities by their ids.
var All = sync.OnceValue(func() map[string]*app.Op {
	all := app.Ops()
	m := make(map[string]*app.Op, len(all))
	for i := range all {
		m[all[i].ID] = &all[i]
	}
	return m
})

// Rooms are the domains that have the capabilities of a group, where they are not in the
// one of its name alone.
var Rooms = map[string][]string{
	"account":                {"oss", "hive"},
	"billing":                {"modelkey", "budget", "logsink", "payment"},
	"box":                    {"box", "join", "overview", "release", "rollout"},
	"config":                 {"prompt"},
	"builtin_dashboard_sync": {"dashboard"},
	"email_route":            {"emailroute"},
	"integration":            {"tracker", "source"},
	"notification":           {"webhook", "notification"},
	"org_sso":                {"sso"},
	"plan":                   {"plan", "budget"},
	"pr":                     {"pull", "talk", "approval", "mergequeue", "provenance"},
	"project":                {"repo", "budget", "creation", "onboarding", "overview", "task"},
	"project_secret":         {"vault"},
	"review":                 {"review", "talk"},
	"run":                    {"overview"},
	"secret":                 {"vault"},
	"self":                   {"hosttoken", "box", "modelkey"},
	"task":                   {"task", "run", "queue", "budget"},
}

// One is the capability of an id; nil if there is none. The domains that may have it are
// looked at first, because to describe all of them takes longer than a call.
func One(id string) *app.Op {
	known.Lock()
	defer known.Unlock()
	if known.ops == nil {
		known.ops, known.Rooms = map[string]*app.Op{}, map[string]bool{}
	}
	group, _, _ := strings.Cut(id, ".")
	for _, room := range append(slices.Clone(Rooms[group]), group) {
		if known.ops[id] == nil && !known.Rooms[room] {
			known.Rooms[room] = true
			all := app.OpsIn(room)
			for i := range all {
				known.ops[all[i].ID] = &all[i]
			}
		}
	}
	if o := known.ops[id]; o != nil {
		return o
	}
	return All()[id]
}

// known are the capabilities that were looked at.
var known struct {
	sync.Mutex
	ops   map[string]*app.Op
	Rooms map[string]bool
}

// Given is an input of a call: a text as a person wrote it, or JSON.
type Given struct {
	Name, Text string
	JSON       bool // text is JSON
	Verbatim   bool // text is a text, whatever it looks like
}

// ParseGiven reads name=value, name:=JSON, name=@FILE and name=- .
func ParseGiven(word string) (g Given, err error) {
	name, value, ok := strings.Cut(word, "=")
	if !ok || name == "" {
		return g, exit.Misused("%q has not the form name=value", word)
	}
	g.Name, g.JSON = strings.CutSuffix(name, ":")
	path, file := strings.CutPrefix(value, "@")
	if value == "-" {
		path = "-"
	} else if !file {
		g.Text = value
		return g, nil
	}
	b, err := exit.OfFile(terminal.Read(path))
	if err != nil {
		return g, err
	}
	g.Text, g.Verbatim = string(b), !g.JSON
	return g, nil
}

// Assemble puts inputs where the row says: into the path, the query and the body. A value
// of a text input is sent unchanged; any other is JSON, or else a list of words or pairs
// where the input is one, or else text.
func Assemble(o *app.Op, inputs []Given) (path string, body any, err error) {
	path = o.Path
	query, members := url.Values{}, map[string]any{}
	where, kinds := o.Input(), o.Kinds()
	for _, in := range inputs {
		switch where[in.Name] {
		case "path":
			path = strings.NewReplacer("{"+in.Name+"}", url.PathEscape(in.Text), "{"+in.Name+"...}", in.Text).Replace(path)
			delete(where, in.Name)
		case "query":
			query.Add(in.Name, in.Text)
		case "body":
			v, err := in.Value(kinds[in.Name])
			if err != nil {
				return "", nil, err
			}
			members[in.Name] = v
		default:
			if words := Near(in.Name, object.Sorted(o.Input())); len(words) > 0 {
				return "", nil, exit.Misused("%s has no input %q; did you mean %s=?", o.ID, in.Name, strings.Join(words, "= or "))
			}
			return "", nil, exit.Misused("%s has no input %q; `yardmaster call %s -h` lists them", o.ID, in.Name, o.ID)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(where)) {
		if where[name] == "path" {
			return "", nil, exit.Misused("%s needs %s=…", o.ID, name)
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

// Value is the input as a member of the body.
func (g Given) Value(kind reflect.Type) (any, error) {
	var v any
	switch {
	case g.JSON:
		if err := json.Unmarshal([]byte(g.Text), &v); err != nil {
			return nil, exit.Misused("%s:= takes JSON: %v", g.Name, err)
		}
		return v, nil
	case g.Verbatim && isText(kind), isText(kind) && g.Text != "null":
		return g.Text, nil
	case json.Unmarshal([]byte(g.Text), &v) == nil:
		return v, nil
	}
	for kind != nil && kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case kind == nil:
	case kind.Kind() == reflect.Slice && isText(kind.Elem()):
		words := []string{}
		for w := range strings.SplitSeq(g.Text, ",") {
			if w = strings.TrimSpace(w); w != "" {
				words = append(words, w)
			}
		}
		return words, nil
	case kind.Kind() == reflect.Map && strings.Contains(g.Text, "="):
		pairs := map[string]string{}
		for pair := range strings.SplitSeq(g.Text, ",") {
			name, value, _ := strings.Cut(pair, "=")
			pairs[strings.TrimSpace(name)] = value
		}
		return pairs, nil
	case kind.Kind() >= reflect.Int && kind.Kind() <= reflect.Float64:
		return nil, exit.Misused("%s takes a number, not %q", g.Name, g.Text)
	}
	return g.Text, nil
}

func isText(t reflect.Type) bool {
	return t != nil && (t.Kind() == reflect.String || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String)
}

// Filters are the keys of the input filter of a list, each with its values, if they are few.
func Filters(o *app.Op) map[string][]string {
	if o.Paging == nil {
		return nil
	}
	return o.Paging.Filters
}

// Page is what the command line knows of an answer that lists something.
type Page struct {
	Data  []json.RawMessage `json:"data"`
	Next  *string           `json:"next_cursor"`
	Pages int               `json:"pages"`
	More  bool              `json:"has_more"`
}

// RowOf is the type of the rows of an answer that lists something; that of the answer if it lists nothing.
func RowOf(t reflect.Type) reflect.Type {
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

// EnumOf are the values that a member of a type may have, if they are few.
func EnumOf(t reflect.Type, name string) []string {
	for _, f := range reflect.VisibleFields(t) {
		if of, _, _ := strings.Cut(f.Tag.Get("json"), ","); of == name {
			return app.ValuesOf(f)
		}
	}
	return nil
}

// Members are the names of a type's members in JSON.
func Members(t reflect.Type) (all []string) {
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
