//go:build !race

package dashboard_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const sources = "../../web/src"

// Every capability that a person would use has a control: a page calls it, or it stands
// in a list with the reason.
func TestParity(t *testing.T) {
	t.Parallel()
	client, err := os.ReadFile(filepath.Join(sources, "client.gen.ts"))
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	word := regexp.MustCompile(`\w+`)
	err = filepath.WalkDir(sources, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Base(path) == "client.gen.ts" || !strings.HasPrefix(filepath.Ext(path), ".ts") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, w := range word.FindAllString(string(text), -1) {
			called[w] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/without.txt")
	if err != nil {
		t.Fatal(err)
	}
	var without []string
	for line := range strings.Lines(string(text)) {
		if id, why, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && why != "" {
			without = append(without, id)
		} else if !strings.HasPrefix(line, "#") {
			t.Errorf("testdata/without.txt: %q is no id and reason", line)
		}
	}
	row := regexp.MustCompile(`export const (\w+) = /\* @__PURE__ \*/ op<.*?>\("([\w.]+)", "`)
	found := row.FindAllStringSubmatch(string(client), -1)
	if len(found) < 200 {
		t.Fatalf("client.gen.ts has %d capabilities", len(found))
	}
	for _, m := range found {
		listed := slices.Contains(without, m[2])
		switch {
		case !called[m[1]] && !listed:
			t.Errorf("no page calls %s: give it a control, or say why not in testdata/without.txt", m[2])
		case called[m[1]] && listed:
			t.Errorf("a page calls %s: remove it from testdata/without.txt", m[2])
		}
		without = slices.DeleteFunc(without, func(id string) bool { return id == m[2] })
	}
	for _, id := range without {
		t.Errorf("testdata/without.txt: there is no capability %s", id)
	}
}

// Pages reach the server by the client alone, put no text into a page as markup, and
// name no other host. Nothing in the folder ui knows a capability.
func TestSources(t *testing.T) {
	t.Parallel()
	never := regexp.MustCompile(`\.innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|\beval\(|new Function|` +
		`document\.write|new (XMLHttpRequest|EventSource|WebSocket)`)
	calls := regexp.MustCompile(`\bfetch\(`)
	doors := []string{"api.ts", "sse.ts", "client.gen.ts"} // they alone call fetch
	err := filepath.WalkDir(sources, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(filepath.Ext(path), ".ts") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if m := never.FindString(string(text)); m != "" {
			t.Errorf("%s has %s", path, m)
		}
		if calls.Match(text) && !slices.Contains(doors, filepath.Base(path)) && !strings.Contains(string(text), "fetch: Fetch") {
			t.Errorf("%s calls fetch: call a constant of client.gen.ts", path)
		}
		if strings.Contains(path, "/ui/") && strings.Contains(string(text), "client.gen") {
			t.Errorf("%s knows capabilities", path)
		}
		if n := strings.Count(string(text), "\n"); n > 500 && filepath.Base(path) != "client.gen.ts" {
			t.Errorf("%s has %d lines", path, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
