// Package recorded has the answers of model providers as they send them, each with
// what a reader must make of it, and a peer that plays them. README.md says how a
// case is added.
//
//   - recorded.go: the cases
//   - want.go: what a reader must make of an answer
//   - wire.go: an answer as it goes over the wire
//   - vary.go: the same answer in other pieces, or cut
//   - play.go: the peer
package recorded

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
)

// files are the cases. A name that begins like a variant is none.
//
//go:embed answers unserved.tsv
var files embed.FS

// Case is one recorded answer.
type Case struct {
	Name string
	Table
	Answer *Answer
	// Unserved says why the program does not take such an answer; "" for one that
	// it takes.
	Unserved string
}

// All are the cases by name. It fails the test for a file that breaks the form.
func All(t testing.TB) []Case {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Served are the cases of APIs that the program takes.
func Served(t testing.TB) (out []Case) {
	t.Helper()
	for _, c := range All(t) {
		if c.Unserved == "" {
			out = append(out, c)
		}
	}
	return out
}

func load() ([]Case, error) {
	reasons, err := unserved()
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(files, "answers")
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".http")
		if !ok {
			base, table := strings.CutSuffix(e.Name(), ".want.json")
			if _, err := fs.Stat(files, "answers/"+base+".http"); !table || err != nil {
				return nil, fmt.Errorf("answers/%s belongs to no case", e.Name())
			}
			continue
		}
		c := Case{Name: name, Unserved: reasons[name]}
		delete(reasons, name)
		if c.Answer, err = read(name); err != nil {
			return nil, err
		}
		if err := c.Table.load(path.Join("answers", name+".want.json")); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	for name := range reasons {
		return nil, fmt.Errorf("unserved.tsv names %s, which is no case", name)
	}
	return all, nil
}

func read(name string) (*Answer, error) {
	at := path.Join("answers", path.Base(name)+".http")
	text, err := files.ReadFile(at)
	if err != nil {
		return nil, err
	}
	a, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return a, nil
}

// unserved reads the reasons by the names of cases.
func unserved() (map[string]string, error) {
	text, err := files.ReadFile("unserved.tsv")
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, reason, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || reason == "" {
			return nil, fmt.Errorf("unserved.tsv: %q has no reason", line)
		}
		out[name] = reason
	}
	return out, err
}
