//go:build !race

package dashboard_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"yardmaster/internal/proof/document"
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

// No page asks for more rows at once than the list gives.
func TestPagesOfLists(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc document.Document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	most := map[string]int{}
	dot := regexp.MustCompile(`[._]\w`)
	for _, methods := range doc.Paths {
		for _, o := range methods {
			name := dot.ReplaceAllStringFunc(o.ID, func(s string) string { return strings.ToUpper(s[1:]) })
			for _, p := range o.Parameters {
				if p.Name == "per_page" {
					most[name] = int(*p.Schema.Maximum)
				}
			}
		}
	}
	asks := regexp.MustCompile(`(\w+)\(\{[^{}]*per_page: (\d+)`)
	n := 0
	err = filepath.WalkDir(sources, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(filepath.Ext(path), ".ts") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range asks.FindAllStringSubmatch(string(text), -1) {
			if wants, _ := strconv.Atoi(m[2]); most[m[1]] > 0 && wants > most[m[1]] {
				t.Errorf("%s asks %s for %d rows, which gives %d at most", path, m[1], wants, most[m[1]])
			}
			n++
		}
		return err
	})
	if err != nil || n < 20 {
		t.Fatalf("%d calls were found: %v", n, err)
	}
}

// The page of an object shows it as the API has it, too.
func TestObjectsAsData(t *testing.T) {
	t.Parallel()
	pages, err := os.ReadFile(filepath.Join(sources, "pages.ts"))
	if err != nil {
		t.Fatal(err)
	}
	entries := regexp.MustCompile(`path: "([^"]*/\{id\})",[^}]*import\("\./(pages/[\w/]+)"\)`).FindAllStringSubmatch(string(pages), -1)
	for _, m := range entries {
		text, err := os.ReadFile(filepath.Join(sources, m[2]+".tsx"))
		if err != nil {
			t.Fatal(err)
		}
		if m[1] != "/ui/call/{id}" && !strings.Contains(string(text), "<Raw ") { // a capability is no object
			t.Errorf("%s shows no data: give it a <Raw>", m[1])
		}
	}
	if len(entries) < 15 {
		t.Errorf("%d pages of objects were found", len(entries))
	}
}

// homes are the pieces that are in one file alone, and what else to use.
var homes = []struct {
	piece *regexp.Regexp
	file  string
	use   string
}{
	{regexp.MustCompile(`count=\{[^}]*ids\.value\.length`), "list.ts", "count={list.count}, which knows whether there are more"},
	{regexp.MustCompile(`Show more\b`), "parts.tsx", "<More>"},
	{regexp.MustCompile(`function Figure\b`), "parts.tsx", "<Figure> of ui/parts.tsx"},
	{regexp.MustCompile(`replaceAll\("_", " "\)`), "status.tsx", "words()"},
	{regexp.MustCompile(`aria-describedby=\{by\}`), "inputs.tsx", "<Text> or <Choice>"},
	{regexp.MustCompile(`createObjectURL`), "api.ts", "keep()"},
	{regexp.MustCompile(`useAgain\(\s*"\w+",\s*undefined`), "plans.tsx", "a test of whether the row is one that the page shows"},
	{regexp.MustCompile(`The link stops working`), "withdraw.tsx", "<Withdraw>"},
	{regexp.MustCompile(`call=\{prRearmBabysit\}`), "arm.tsx", "<Arm>"},
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
		for _, h := range homes {
			if m := h.piece.Find(text); m != nil && filepath.Base(path) != h.file {
				t.Errorf("%s has %s: use %s", path, m, h.use)
			}
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
