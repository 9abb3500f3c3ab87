package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"yardmaster/internal/lazy"
)

// The files of a plan directory, besides the slices (NN-slug.md).
const (
	OverviewFile = "overview.md"
	StatusFile   = "status.yml"
)

// The states in a status file.
const (
	statusOpen      = "open"
	statusDone      = "done"
	statusCancelled = "cancelled"
)

// Problem is one reason why a plan cannot be executed or filed.
type Problem struct {
	On     Part   `json:"on"`
	Name   string `json:"name" doc:"the document, or the number of the scout"`
	Detail string `json:"detail"`
}

// Part is what a problem of a plan is about.
type Part string

const (
	onSlug      = "slug"
	onDocuments = "documents"
	onScouts    = "scouts"
	onCodeHost  = "code_host"
)

// Values lists all of them.
func (Part) Values() []string { return []string{onSlug, onDocuments, onScouts, onCodeHost} }

// directory is a plan directory that was read without a problem.
type directory struct {
	title    string // heading of the overview
	overview string
	slices   []slice // in the order of their numbers
	status   status
	digest   string // of the overview and the slices; the status file may change
}

// slice is one numbered document: one pull request.
type slice struct {
	name      string // NN-slug
	title     string
	body      string
	repo      string // owner/name; "" for the repository of the directory
	files     []string
	dependsOn []dependency
}

type dependency struct{ unit, kind string }

// status is a status file.
type status struct {
	Status string            `yaml:"status"`
	Units  map[string]string `yaml:"units"`
}

// matter is the front matter of a slice.
type matter struct {
	DependsOn []depends `yaml:"depends_on"`
	Files     []string  `yaml:"files"`
	Repo      string    `yaml:"repo"`
}

// depends is one entry of depends_on: the name of a slice, or a mapping with
// unit and kind.
type depends struct{ dependency }

// UnmarshalYAML reads either form.
func (d *depends) UnmarshalYAML(n *yaml.Node) error {
	d.kind = Code
	if n.Kind == yaml.ScalarNode {
		d.unit = n.Value
		return nil
	}
	var long map[string]string
	if err := n.Decode(&long); err != nil {
		return err
	}
	for key, value := range long {
		switch {
		case key == "unit":
			d.unit = value
		case key == "kind" && (value == Code || value == OrderingOnly):
			d.kind = value
		default:
			return fmt.Errorf("line %d: an entry of depends_on has unit, and kind (%s or %s)", n.Line, Code, OrderingOnly)
		}
	}
	return nil
}

var (
	sliceFile = lazy.New(`^(\d{2,3})-([a-z0-9]+(?:-[a-z0-9]+)*)\.md$`)
	repoName  = lazy.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}/[A-Za-z0-9._-]{1,100}$`)
)

const maxName = 100

// parse reads a plan directory, and finds all its problems, not the first
// alone. whole says that every file must be a document of the plan: a plan that
// is filed has no other files.
func parse(files map[string][]byte, whole bool) (directory, []Problem) {
	var d directory
	var problems []Problem
	wrong := func(name, format string, a ...any) {
		problems = append(problems, Problem{onDocuments, name, fmt.Sprintf(format, a...)})
	}
	numbers := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m := sliceFile.FindStringSubmatch(name)
		ours := m != nil || name == OverviewFile || name == StatusFile
		if !ours {
			if whole || strings.HasSuffix(name, ".md") {
				wrong(name, "is no document of a plan: there are %s, %s and slices named like 01-add-the-field.md", OverviewFile,
					StatusFile)
			}
			continue
		}
		text, bad := document(files[name])
		if bad != "" {
			wrong(name, "%s", bad)
			continue
		}
		switch {
		case m != nil:
			s, bad := parseSlice(strings.TrimSuffix(name, ".md"), text)
			for _, b := range bad {
				wrong(name, "%s", b)
			}
			if other := numbers[m[1]]; other != "" {
				wrong(name, "has the same number as %s", other)
			}
			numbers[m[1]] = name
			d.slices = append(d.slices, s)
		case name == OverviewFile:
			d.overview = text
			if d.title = heading(text); d.title == "" {
				wrong(name, "must begin with a heading of one line and at most %d characters", maxTitle)
			}
		default:
			var bad string
			if d.status, bad = parseStatus(text); bad != "" {
				wrong(name, "%s", bad)
			}
		}
	}
	if _, ok := files[OverviewFile]; !ok {
		wrong(OverviewFile, "is missing")
	}
	if len(numbers) == 0 {
		wrong("", "there is no slice, a document named like 01-add-the-field.md")
	}
	if len(d.slices) > maxUnits {
		wrong("", "there are %d slices; a plan has %d at most", len(d.slices), maxUnits)
	}
	if len(problems) > 0 {
		return directory{}, problems
	}
	d.digest = digest(files)
	d.check(wrong)
	if len(problems) > 0 {
		return directory{}, problems
	}
	return d, nil
}

// check finds problems between the slices, and between them and the status
// file.
func (d *directory) check(wrong func(name, format string, a ...any)) {
	known := map[string]bool{}
	up := map[string][]string{}
	for _, s := range d.slices {
		known[s.name] = true
	}
	for _, s := range d.slices {
		for _, dep := range s.dependsOn {
			switch {
			case dep.unit == s.name:
				wrong(s.name+".md", "depends on itself")
			case !known[dep.unit]:
				wrong(s.name+".md", "depends on %q, which is no slice of this plan", clip(dep.unit))
			case slices.Contains(up[s.name], dep.unit):
				wrong(s.name+".md", "names %q twice in depends_on", dep.unit)
			}
			up[s.name] = append(up[s.name], dep.unit)
		}
	}
	if circle := cycle(up); circle != nil {
		wrong(circle[0]+".md", "waits for itself: %s", strings.Join(circle, " needs "))
	}
	for _, unit := range slices.Sorted(maps.Keys(d.status.Units)) {
		if !known[unit] {
			wrong(StatusFile, "names %q, which is no slice of this plan", clip(unit))
		}
	}
}

// document checks the size and encoding of a document, and returns it with line
// ends as \n.
func document(b []byte) (text, wrong string) {
	switch {
	case len(b) > maxDocument:
		return "", fmt.Sprintf("is larger than %d KiB", maxDocument>>10)
	case !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0:
		return "", "is not UTF-8 text"
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n"), ""
}

// heading returns the text of the heading that a document begins with, or "" if
// it begins with none.
func heading(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "\n \t"), "\n")
	title, ok := strings.CutPrefix(line, "# ")
	if title = strings.TrimSpace(title); !ok || utf8.RuneCountInString(title) > maxTitle || strings.ContainsAny(title, "\r") {
		return ""
	}
	return title
}

func parseSlice(name, text string) (s slice, wrong []string) {
	s.name = name
	if len(name) > maxName {
		wrong = append(wrong, fmt.Sprintf("has a name of more than %d characters", maxName))
	}
	var front matter
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		head, body, ok := strings.Cut("\n"+rest, "\n---\n")
		if !ok {
			return s, append(wrong, "has front matter that does not end with a line of ---")
		}
		text = body
		if err := decode(head, &front); err != "" {
			return s, append(wrong, "front matter: "+err)
		}
	}
	if s.title = heading(text); s.title == "" {
		wrong = append(wrong, fmt.Sprintf("must begin with a heading of one line and at most %d characters", maxTitle))
	}
	if s.body = strings.TrimSpace(text); utf8.RuneCountInString(s.body) > maxProblem-1000 {
		wrong = append(wrong, fmt.Sprintf("has more than %d characters, too many for one task", maxProblem-1000))
	}
	if s.repo = front.Repo; s.repo != "" && !repoName.MatchString(s.repo) {
		wrong = append(wrong, fmt.Sprintf("repo must be owner/name, not %q", clip(s.repo)))
	}
	for _, f := range front.Files {
		if !plainPath(f) {
			wrong = append(wrong, fmt.Sprintf("files: %q is not a path inside the repository", clip(f)))
		}
		s.files = append(s.files, f)
	}
	if len(front.Files) > 200 {
		wrong = append(wrong, "files: has more than 200 entries")
	}
	for _, d := range front.DependsOn {
		s.dependsOn = append(s.dependsOn, d.dependency)
	}
	return s, wrong
}

func parseStatus(text string) (st status, wrong string) {
	if err := decode(text, &st); err != "" {
		return status{}, err
	}
	if st.Status == "" {
		st.Status = statusOpen
	}
	if !slices.Contains([]string{statusOpen, statusDone, statusCancelled}, st.Status) {
		return status{}, fmt.Sprintf("status must be one of %s, %s, %s", statusOpen, statusDone, statusCancelled)
	}
	for unit, is := range st.Units {
		if is != statusOpen && is != statusDone {
			return status{}, fmt.Sprintf("units: %s must be %s or %s", clip(unit), statusOpen, statusDone)
		}
	}
	return st, ""
}

// decode reads one YAML document. Unknown keys are errors.
func decode(text string, into any) (wrong string) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) { // an empty document
		return ""
	}
	if err == nil {
		if err = dec.Decode(new(any)); errors.Is(err, io.EOF) {
			return ""
		}
		return "holds more than one YAML document"
	}
	var types *yaml.TypeError
	if errors.As(err, &types) {
		return strings.NewReplacer(" in type plan.matter", "", " in type plan.status", "", "plan.",
			"").Replace(strings.Join(types.Errors, "; "))
	}
	return strings.TrimPrefix(err.Error(), "yaml: ")
}

// statusText returns the status file of a plan that begins.
func (d *directory) statusText() []byte {
	st := status{Status: statusOpen, Units: map[string]string{}}
	for _, s := range d.slices {
		st.Units[s.name] = statusOpen
	}
	b, _ := yaml.Marshal(st) // a struct of strings cannot fail
	return b
}

// digest returns a hash of the overview and the slices. The status file and
// other files do not change it.
func digest(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == OverviewFile || sliceFile.MatchString(name) {
			fmt.Fprintf(h, "%s %d\n", name, len(files[name]))
			h.Write(files[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// plainPath tells whether a path names a file or folder inside a repository, as
// git spells it.
func plainPath(p string) bool {
	return fs.ValidPath(p) && p != "." && len(p) <= 500 && !strings.ContainsFunc(p,
		func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) &&
		!slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
