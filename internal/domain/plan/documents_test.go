package plan

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

func documents(more map[string]string) map[string][]byte {
	out := map[string][]byte{OverviewFile: []byte("# P\n"), "01-a.md": []byte("# A\n"), StatusFile: []byte("status: open\n")}
	for name, text := range more {
		if text == "-" {
			delete(out, name)
			continue
		}
		out[name] = []byte(text)
	}
	return out
}

func TestParse(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		files map[string]string
		says  string // of a problem; empty: there is none
	}{
		"the least":                   {nil, ""},
		"no overview":                 {map[string]string{OverviewFile: "-"}, "overview.md: is missing"},
		"an overview without heading": {map[string]string{OverviewFile: "text"}, "overview.md: must begin with a heading"},
		"no slice":                    {map[string]string{"01-a.md": "-"}, ": there is no slice"},
		"no heading":                  {map[string]string{"01-a.md": "---\nfiles: []\n---\ntext"}, "01-a.md: must begin with a heading"},
		"a long title": {map[string]string{"01-a.md": "# " + strings.Repeat("x", 201)},
			"01-a.md: must begin with a heading"},
		"a name that is no slice's": {map[string]string{"1-a.md": "# A"}, "1-a.md: is no document of a plan"},
		"capitals":                  {map[string]string{"02-B.md": "# B"}, "02-B.md: is no document of a plan"},
		"a picture":                 {map[string]string{"plan.png": "\xff"}, ""},
		"two of a number":           {map[string]string{"01-b.md": "# B"}, "01-b.md: has the same number as 01-a.md"},
		"a long name":               {map[string]string{"02-" + strings.Repeat("x", 100) + ".md": "# B"}, "has a name of more than"},
		"no text":                   {map[string]string{"02-b.md": "# \xff"}, "02-b.md: is not UTF-8 text"},
		"a large one": {map[string]string{"02-b.md": "# B\n" + strings.Repeat("x", maxDocument)},
			"02-b.md: is larger than 64 KiB"},
		"more than a task takes": {map[string]string{"02-b.md": "# B\n" + strings.Repeat("x", maxProblem)},
			"02-b.md: has more than 19000 characters"},
		"front matter without end": {map[string]string{"02-b.md": "---\nfiles: []\n# B"}, "02-b.md: has front matter that does not end"},
		"an unknown key": {map[string]string{"02-b.md": "---\nneeds: [01-a]\n---\n# B"},
			"02-b.md: front matter: line 2: field needs not found"},
		"a name in place of a list": {map[string]string{"02-b.md": "---\ndepends_on: 01-a\n---\n# B"}, "02-b.md: front matter: "},
		"a long entry":              {map[string]string{"02-b.md": "---\ndepends_on: [{unit: 01-a, kind: ordering_only}]\n---\n# B"}, ""},
		"an entry of another kind": {map[string]string{"02-b.md": "---\ndepends_on: [{unit: 01-a, kind: soft}]\n---\n# B"},
			"02-b.md: front matter: line 2: an entry of depends_on"},
		"a dependency that is none": {map[string]string{"02-b.md": "---\ndepends_on: [03-c]\n---\n# B"},
			`02-b.md: depends on "03-c", which is no slice`},
		"itself":    {map[string]string{"02-b.md": "---\ndepends_on: [02-b]\n---\n# B"}, "02-b.md: depends on itself"},
		"one twice": {map[string]string{"02-b.md": "---\ndepends_on: [01-a, 01-a]\n---\n# B"}, `names "01-a" twice`},
		"a circle": {map[string]string{"02-b.md": "---\ndepends_on: [03-c]\n---\n# B", "03-c.md": "---\ndepends_on: [02-b]\n---\n# C"},
			"02-b.md: waits for itself: 02-b needs 03-c needs 02-b"},
		"a path outside":            {map[string]string{"02-b.md": "---\nfiles: [../x]\n---\n# B"}, `02-b.md: files: "../x" is not a path`},
		"a repository":              {map[string]string{"02-b.md": "---\nrepo: acme/api\n---\n# B"}, ""},
		"no repository":             {map[string]string{"02-b.md": "---\nrepo: api\n---\n# B"}, "02-b.md: repo must be owner/name"},
		"lines of another system":   {map[string]string{"02-b.md": "---\r\ndepends_on: [01-a]\r\n---\r\n# B\r\n"}, ""},
		"empty front matter":        {map[string]string{"02-b.md": "---\n---\n# B"}, ""},
		"two documents of YAML":     {map[string]string{StatusFile: "status: open\n---\nstatus: done"}, "status.yml: holds more than one"},
		"a status that is none":     {map[string]string{StatusFile: "status: soon"}, "status.yml: status must be one of"},
		"a unit that is none":       {map[string]string{StatusFile: "units: {02-b: done}"}, `status.yml: names "02-b"`},
		"a unit of no such status":  {map[string]string{StatusFile: "units: {01-a: soon}"}, "status.yml: units: 01-a must be open or done"},
		"an empty status file":      {map[string]string{StatusFile: ""}, ""},
		"a status file without one": {map[string]string{StatusFile: "units: {01-a: done}"}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			d, problems := parse(documents(c.files), false)
			var said []string
			for _, p := range problems {
				said = append(said, p.Name+": "+p.Detail)
			}
			if c.says == "" && (len(problems) > 0 || len(d.slices) == 0 || d.digest == "") {
				t.Errorf("refused: %v", said)
			}
			if c.says != "" && !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.says) }) {
				t.Errorf("said %v, want %q", said, c.says)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	sum := digest(documents(nil))
	if digest(documents(map[string]string{StatusFile: "status: done", "picture.png": "x"})) != sum {
		t.Error("the status file and what is no document count")
	}
	if digest(documents(map[string]string{"01-a.md": "# A"})) == sum || digest(documents(map[string]string{"02-b.md": ""})) == sum {
		t.Error("documents do not count")
	}
}

// TestTheManual holds that the example of the manual is a plan.
func TestTheManual(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../docs/plans.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n~~~text\n(.*?)\n~~~\n").FindSubmatch(b)
	if m == nil {
		t.Fatal("there is no example")
	}
	files := map[string][]byte{}
	for _, f := range txtar.Parse(append(m[1], '\n')).Files {
		files[strings.TrimPrefix(f.Name, "plans/retries/")] = f.Data
	}
	d, problems := parse(files, true)
	if len(problems) > 0 || len(d.slices) != 3 || d.status.Status != statusOpen || d.slices[2].dependsOn[1].kind != OrderingOnly {
		t.Errorf("%v, %+v", problems, d)
	}
	if string(files[StatusFile]) == "" {
		t.Error("the example has no status file")
	}
}

// FuzzParse holds that every directory is read as problems, or as a plan within
// the limits whose slices can be ordered, and which is read the same when
// written again.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, overview, slice, other, status []byte) {
		files := map[string][]byte{OverviewFile: overview, "01-a.md": slice, "02-b.md": other, StatusFile: status}
		d, problems := parse(files, true)
		if len(problems) > 0 {
			for _, p := range problems {
				if p.Detail == "" || p.On != onDocuments || !utf8.ValidString(p.Detail) {
					t.Fatalf("%+v", p)
				}
			}
			return
		}
		up := map[string][]string{}
		for _, s := range d.slices {
			if s.title == "" || utf8.RuneCountInString(s.title) > maxTitle || strings.ContainsAny(s.title, "\n\r") ||
				utf8.RuneCountInString(s.body) > maxProblem {
				t.Fatalf("%+v", s)
			}
			for _, path := range s.files {
				if !plainPath(path) {
					t.Fatalf("a file %q", path)
				}
			}
			for _, dep := range s.dependsOn {
				up[s.name] = append(up[s.name], dep.unit)
				if dep.kind != Code && dep.kind != OrderingOnly {
					t.Fatalf("an edge of kind %q", dep.kind)
				}
			}
		}
		if cycle(up) != nil {
			t.Fatalf("%v is a circle", up)
		}
		again := maps.Clone(files)
		again[StatusFile] = d.statusText()
		if e, problems := parse(again, true); len(problems) > 0 || e.digest != d.digest || e.status.Status != statusOpen {
			t.Fatalf("with our own status file: %v", problems)
		}
	})
}

func TestParseCitation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a.go:1": "a.go:1", "a/b.go:3-7": "a/b.go:3-7", "README:2": "README:2", "a b:1": "a b:1", "a.go:5-5": "a.go:5",
		"a.go": "", "a.go:": "", "a.go:0": "", "a.go:7-3": "", "a.go:01": "", "../a:1": "", "/a:1": "", ":1": "", "a.go:1-": "",
		"a.go:-1":       "",
		"a.go:99999999": "", ".git/x:1": "",
	} {
		c, ok := parseCitation(text)
		if ok != (want != "") || ok && c.String() != want {
			t.Errorf("%q: %v, %v", text, c, ok)
		}
	}
}

// FuzzParseCitation holds that a citation that is printed is read the same.
func FuzzParseCitation(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := parseCitation(text)
		if !ok {
			return
		}
		if d, ok := parseCitation(c.String()); !ok || d != c || c.from < 1 || c.to < c.from || !plainPath(c.path) {
			t.Fatalf("%q is %+v, and then %+v", text, c, d)
		}
	})
}

func TestClaims(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"- It is slow (`a/b.go:3`).":            "It is slow. a/b.go:3",
		"2. See a.go:1, a.go:2-4; b/Makefile:9": "See a.go:1 a.go:2-4 b/Makefile:9",
		"http://host.com:80/x is no place":      "",
		"at 12:30 it broke":                     "",
		"README:1 greets README:1":              "greets README:1",
		"**bold** claim, see x.go:7":            "**bold** claim, see x.go:7",
	} {
		var got string
		for _, c := range claims(line) {
			got = c.text
			for _, at := range c.cites {
				got += " " + at.String()
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// FuzzReport holds that every claim of a report has citations, and that the
// documents of a report are read as they are written.
func FuzzReport(f *testing.F) {
	f.Fuzz(func(t *testing.T, report string) {
		for _, c := range claims(report) {
			if len(c.cites) == 0 || strings.Contains(c.text, "\n") {
				t.Fatalf("%+v", c)
			}
			for _, at := range c.cites {
				if d, ok := parseCitation(at.String()); !ok || d != at {
					t.Fatalf("%+v", at)
				}
			}
		}
		for name, text := range documentsIn(report) {
			if name == "" || !strings.Contains(report, string(text)) && !strings.Contains(report, name) {
				t.Fatalf("%q: %q is nowhere in the report", name, text)
			}
		}
	})
}

// TestGrounded holds that the items of lists claim something, and that a line which cites is
// grounded, wherever it stands.
func TestGrounded(t *testing.T) {
	t.Parallel()
	n, d := Grounded("# It is small\n\nSee a.go:7.\n\n- the page is in web/page.go:12-14\n- nobody knows\nA word.\n")
	if n != 2 || d != 3 {
		t.Errorf("%d of %d", n, d)
	}
	if n, d := Grounded(""); n != 0 || d != 0 {
		t.Errorf("%d of %d of nothing", n, d)
	}
}
