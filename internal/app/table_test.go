package app

import (
	"cmp"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
)

func TestTable(t *testing.T) {
	t.Parallel()
	ids, routes, shapes := map[string]bool{}, map[string]string{}, map[string]string{}
	name := regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)
	for _, o := range Ops() {
		if ids[o.ID] {
			t.Errorf("two rows are %s", o.ID)
		}
		ids[o.ID] = true
		route := o.Method + " " + o.Path
		if other := routes[route]; other != "" {
			t.Errorf("%s is served by %s and %s", route, other, o.ID)
		}
		routes[route] = o.ID
		// The same path with other names for its parameters would not be routed
		// to the row that a reader expects.
		shape := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(o.Path, "{}")
		if other := shapes[shape]; other != "" && other != o.Path {
			t.Errorf("%s and %s are one path with two spellings", other, o.Path)
		}
		shapes[shape] = o.Path
		switch {
		case !name.MatchString(o.ID):
			t.Errorf("%s is not of the form group.verb", o.ID)
		case !o.Rule.Declared():
			t.Errorf("%s has no rule", o.ID)
		case o.Summary == "" || strings.HasSuffix(o.Summary, "."):
			t.Errorf("%s: the summary is a phrase without a full stop, not %q", o.ID, o.Summary)
		case o.Group == "":
			t.Errorf("%s has no group", o.ID)
		case o.Rule.IsPublic() && len(o.Rule.Names()) > 0:
			t.Errorf("%s is public and names scopes", o.ID)
		}
		for _, p := range pathParams(o.Path) {
			if o.Input()[p] != "path" {
				t.Errorf("%s: {%s} of the path is no input", o.ID, p)
			}
		}
		if o.Paging == nil {
			continue
		}
		if g := o.Paging; !g.Full && (g.Default < 1 || g.Max < g.Default) {
			t.Errorf("%s: a page has %d rows, at most %d", o.ID, g.Default, g.Max)
		}
		if o.Method != "GET" {
			t.Errorf("%s pages and is no GET", o.ID)
		}
	}
}

// inFull are the collections that are always served in full: the contract names them.
var inFull = []string{"member.list", "integration.list", "notification.prefs_list"}

// TestCollections holds that every list pages with a cursor, or is one of those that are
// always whole; that each tells whether rows follow; and that there is no third kind but
// those named here.
func TestCollections(t *testing.T) {
	t.Parallel()
	other := map[string]string{
		"plan.list":   "has numbered pages",
		"review.list": "answers a fixed 50",
		"kb.search":   "answers those that fit best, at most 25",
		"actor.names": "answers those that the call names, at most 100",
	}
	n := 0
	for _, o := range Ops() {
		if o.Method != "GET" || o.Output() == nil || o.Output().Kind() != reflect.Struct || !strings.HasPrefix(o.Path, "/v1/") {
			continue
		}
		has := map[string]bool{}
		for _, f := range reflect.VisibleFields(o.Output()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			has[name] = has[name] || name != "data" || f.Type.Kind() == reflect.Slice
		}
		switch g := o.Paging; {
		case !has["data"] && g == nil:
			continue
		case !has["next_cursor"] && o.ID != "plan.list":
			t.Errorf("%s is a list that answers no next_cursor", o.ID)
		case other[o.ID] != "":
			n++
		case g == nil:
			t.Errorf("%s is a list that does not page", o.ID)
		case g.Full != slices.Contains(inFull, o.ID):
			t.Errorf("%s is served in full: %v", o.ID, g.Full)
		}
		n++
	}
	if n < 50 {
		t.Errorf("%d lists were seen", n)
	}
}

// rows reads a committed table: tab-separated, # begins a comment line.
func rows(t *testing.T, file string) (out [][]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		out = append(out, strings.Split(line, "\t"))
	}
	return out
}

// keyed is a table by its first column.
func keyed(t *testing.T, file string, columns int) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, r := range rows(t, file) {
		if len(r) != columns {
			t.Errorf("internal/app/testdata/%s: %q has %d columns, not %d (tabs between them)", file, r[0], len(r), columns)
			continue
		}
		if out[r[0]] != nil {
			t.Errorf("internal/app/testdata/%s names %s twice", file, r[0])
		}
		out[r[0]] = r[1:]
	}
	return out
}

// both are the rows for which the contract names a further scope beside its
// table.
var both = map[string]string{"access_request.invite": "admin:grants+admin:users", "project.health": "read:prs+read:tasks"}

// TestContract holds the served rows against the contract: every capability is
// served as the contract says, or is on the list of the missing.
func TestContract(t *testing.T) {
	t.Parallel()
	contract := keyed(t, "capabilities.tsv", 4) // capability, method, path, scope
	missing := keyed(t, "missing.txt", 1)
	extra := keyed(t, "extra.txt", 2) // capability, why
	if len(contract) != 231 {
		t.Fatalf("the contract has %d capabilities, not 231", len(contract))
	}
	served := map[string]op.Op{}
	for _, o := range Ops() {
		served[o.ID] = o
	}
	for _, name := range slices.Sorted(maps.Keys(contract)) {
		c := contract[name]
		o, ok := served[name]
		switch {
		case !ok && missing[name] == nil:
			t.Errorf("%s is neither served nor missing: serve it; internal/app/testdata/missing.txt only shrinks", name)
			continue
		case ok && missing[name] != nil:
			t.Errorf("%s is served now: remove its line from internal/app/testdata/missing.txt", name)
			continue
		case !ok:
			continue
		}
		if o.Method != c[0] || strings.ReplaceAll(o.Path, "...}", "}") != c[1] {
			t.Errorf("%s is served at %s %s, and should be at %s %s", name, o.Method, o.Path, c[0], c[1])
		}
		// Rows whose access is narrower or wider than the scope they publish are
		// in the tables of TestEveryRowIsGuarded.
		if got := o.Rule.String(); got != cmp.Or(both[name], c[2]) {
			t.Errorf("%s demands %s, and should %s, as internal/app/testdata/capabilities.tsv says", name, got, c[2])
		}
	}
	for name := range served {
		if contract[name] == nil && extra[name] == nil {
			t.Errorf("%s is served and not in the contract: add a line to internal/app/testdata/extra.txt, %q, a tab, and why there is such a row", name, name)
		}
	}
	for name := range missing {
		if contract[name] == nil {
			t.Errorf("%s is not in the contract: remove its line from internal/app/testdata/missing.txt", name)
		}
	}
	for name := range extra {
		if _, ok := served[name]; !ok || contract[name] != nil {
			t.Errorf("%s is not served, or is in the contract: remove its line from internal/app/testdata/extra.txt", name)
		}
	}
}
