package app

import (
	"flag"
	"fmt"
	"io/fs"
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
	slug      = regexp.MustCompile(`"type": "\*/problems/([a-zA-Z0-9_-]+)"`)
)

// played is what the transcripts show of a row.
type played struct {
	file     string          // the first by its name, of those with a success if there is one
	success  bool            // whether file has one
	refusals map[string]bool // "409 task_terminal"
}

// transcripts finds, for each row, what the transcripts show of it.
func transcripts(t *testing.T, served map[string]op.Op) map[string]*played {
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
	out := map[string]*played{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, called, status := "internal/"+strings.TrimPrefix(filepath.ToSlash(file), "../"), "", ""
		flush := func() {
			if status >= "400" { // a refusal whose slug the step does not say
				out[called].refusals[status] = true
			}
			status = ""
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "-- ") { // another step
				flush()
				called = ""
			}
			if m := asked.FindStringSubmatch(line); m != nil {
				path, _, _ := strings.Cut(m[2], "?")
				for _, r := range routes[m[1]] {
					if r.path.MatchString(path) {
						called = r.id
						break
					}
				}
			}
			if called == "" {
				continue
			}
			p := out[called]
			if m := answered.FindStringSubmatch(line); m != nil {
				status = m[1]
				if p == nil {
					p = &played{refusals: map[string]bool{}}
					out[called] = p
				}
				if ok := status < "400"; p.file == "" || ok && !p.success {
					p.file, p.success = name, ok
				}
			}
			if m := slug.FindStringSubmatch(line); m != nil && status >= "400" {
				p.refusals[status+" "+m[1]], status = true, ""
			}
		}
		flush()
	}
	return out
}

// The page says of each row of the contract whether it is served, what holds it, who writes each
// field of what it answers, and which refusals were seen.
func TestConformancePage(t *testing.T) {
	t.Parallel()
	contract, served := keyed(t, "capabilities.tsv", 4), map[string]op.Op{}
	for _, o := range Ops() {
		served[o.ID] = o
	}
	shown, n := transcripts(t, served), 0
	answered := answersOf(t, contract, served)
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(contract)) {
		o, ok := served[name]
		holds, what, refused := "not served yet", "", []string{}
		if ok {
			n++
			holds, what = "the tests of every row, `internal/app`", answered.of(o)
			if p := shown[name]; p != nil {
				holds, refused = "`"+p.file+"`", slices.Sorted(maps.Keys(p.refusals))
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s `%s` | %s | %s | %s |\n", name, contract[name][0], contract[name][1], holds, what,
			strings.Join(refused, ", "))
	}
	want := fmt.Sprintf(conformance, len(contract), n, table.String(), answered.fields(t))
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

// Each refusal that a row declares is named by a test or a transcript, or it is said which are not.
func TestRefusalsAreSeen(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all, unseen, declared := tests.String(), keyed(t, "unseen.txt", 2), map[string]bool{}
	for _, o := range Ops() {
		for _, r := range o.Refuses {
			declared[r.Slug] = true
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(declared)) {
		switch seen := strings.Contains(all, slug); {
		case seen && unseen[slug] != nil:
			t.Errorf("a test names %s: remove it from internal/app/testdata/unseen.txt", slug)
		case !seen && unseen[slug] == nil:
			t.Errorf("no test names the refusal %s", slug)
		}
	}
	for slug := range unseen {
		if !declared[slug] {
			t.Errorf("no row declares %s: remove it from internal/app/testdata/unseen.txt", slug)
		}
	}
}

const conformance = "# Conformance\n\nThe contract has %d capabilities; %d are served. A transcript is played against the whole program on " +
	"both databases and over MCP (`go test ./internal/proof/transcript`). Besides it, each row that is served is held by the tests of " +
	"every row in `internal/app`: method, path and scope as the contract has them, who is refused, and bodies that make no sense. A test " +
	"writes this page (`go test ./internal/app -run TestConformancePage -args -write-page`) and fails where it is not true.\n\nThe refusals " +
	"are those that the transcripts show.\n\n" +
	"| Capability | Path | Held by | Answer | Refusals |\n| --- | --- | --- | --- | --- |\n%s\n" +
	"## Who writes the answers\n\nOf each field of the answers above, the functions and statements that write it, as the source has them, " +
	"read with its types. A field that nobody writes fails the test, and so does one that is always the same, unless it is said here why." +
	"\n\n| Field | Written by |\n| --- | --- |\n%s"
