package app

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
)

var writePage = flag.Bool("write-page", false, "write docs/conformance.md")

var (
	parameter = regexp.MustCompile(`\{[^}]*\}`)
	asked     = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/\S*)`)
	answered  = regexp.MustCompile(`^=> ([0-9]{3})`)
)

// playedBy finds, for each row, the transcript that calls it: one that answers a success if there is
// one, the first by its name.
func playedBy(t *testing.T, served map[string]op.Op) map[string]string {
	t.Helper()
	type route struct {
		id     string
		path   *regexp.Regexp
		params int
	}
	routes := map[string][]route{}
	for _, o := range served {
		parts, last := "", 0
		for _, at := range parameter.FindAllStringIndex(o.Path, -1) {
			one := "[^/]+"
			if strings.Contains(o.Path[at[0]:at[1]], "...") {
				one = ".+"
			}
			parts, last = parts+regexp.QuoteMeta(o.Path[last:at[0]])+one, at[1]
		}
		text := "^" + parts + regexp.QuoteMeta(o.Path[last:]) + "$"
		routes[o.Method] = append(routes[o.Method], route{o.ID, regexp.MustCompile(text), strings.Count(o.Path, "{")})
	}
	for _, of := range routes {
		slices.SortFunc(of, func(a, b route) int { return a.params - b.params })
	}
	files, err := filepath.Glob("../*/*/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out, success := map[string]string{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, called := "internal/"+strings.TrimPrefix(filepath.ToSlash(file), "../"), ""
		for line := range strings.Lines(string(text)) {
			if m := asked.FindStringSubmatch(line); m != nil {
				path, _, _ := strings.Cut(m[2], "?")
				called = ""
				for _, r := range routes[m[1]] {
					if r.path.MatchString(path) {
						called = r.id
						break
					}
				}
			}
			m := answered.FindStringSubmatch(line)
			if m == nil || called == "" {
				continue
			}
			if ok := m[1] < "400"; out[called] == "" || ok && !success[called] {
				out[called], success[called] = name, ok
			}
			called = ""
		}
	}
	return out
}

// The page says of each row of the contract whether it is served, and what holds it.
func TestConformancePage(t *testing.T) {
	t.Parallel()
	contract, served := keyed(t, "capabilities.tsv", 4), map[string]op.Op{}
	for _, o := range Ops() {
		served[o.ID] = o
	}
	by, n := playedBy(t, served), 0
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(contract)) {
		holds := "not served yet"
		if _, ok := served[name]; ok {
			if n++; by[name] != "" {
				holds = "`" + by[name] + "`"
			} else {
				holds = "the tests of every row, `internal/app`"
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s `%s` | %s |\n", name, contract[name][0], contract[name][1], holds)
	}
	want := fmt.Sprintf(`# Conformance

The contract has %d capabilities; %d are served. A transcript is played against the whole program on both databases and over MCP (`+
		"`go test ./internal/proof/transcript`"+`). Besides it, each row that is served is held by the tests of every row in `+
		"`internal/app`"+`: method, path and scope as the contract has them, who is refused, and bodies that make no sense. A test writes this page (`+
		"`go test ./internal/app -run TestConformancePage -args -write-page`"+`) and fails where it is not true.

| Capability | Path | Held by |
| --- | --- | --- |
`, len(contract), n) + table.String()
	const page = "../../docs/conformance.md"
	if *writePage {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/conformance.md is not what is served: go test ./internal/app -run TestConformancePage -args -write-page")
	}
}
