package transcript

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	anID   = "0199d3a4-5b6c-7d8e-9f01-23456789abcd"
	aTime  = "2026-03-14T09:26:53Z"
	listed = "{\n  \"data\": [{\"id\": \"<task>\", \"at\": \"*\"},\n    {\"id\": \"<next>\"}]\n}"
)

// TestReviseJSON holds that a revised pattern keeps the parts that match, with their
// layout.
func TestReviseJSON(t *testing.T) {
	for name, c := range map[string]struct{ pattern, got, want string }{
		"nothing to do":   {`{"a":   "<task>"}`, `{"a": "` + anID + `", "b": 1}`, `{"a":   "<task>"}`},
		"one value":       {`{"a": 1,   "b": "x*"}`, `{"a": 2, "b": "xy"}`, `{"a": 2,   "b": "x*"}`},
		"null":            {`{"a": 1}`, `{"a": null}`, `{"a": null}`},
		"a member less":   {`{"a": 1, "b": 2}`, `{"b": 2}`, `{"b": 2}`},
		"another type":    {`{"a": {"b": 1}}`, `{"a": [1, "x"]}`, `{"a": [1, "x"]}`},
		"a known value":   {`{"a": "x"}`, `{"a": "of ` + anID + `"}`, `{"a": "of <task>"}`},
		"a time":          {`{"a": "x"}`, `{"a": "` + aTime + `"}`, `{"a": "*"}`},
		"an element more": {`{"a": ["x"]}`, `{"a": ["x", "y"]}`, `{"a": ["x", "y"]}`},
		"an open list":    {`{"a": ["x", "..."]}`, `{"a": ["z", "y"]}`, `{"a": ["z", "..."]}`},
		"deep inside":     {listed, `{"data": [{"id": "` + anID + `", "at": 1}, {"id": "7", "at": 2}]}`, listed},
		"deep inside, changed": {
			strings.Replace(listed, `"*"`, `3`, 1),
			`{"data": [{"id": "` + anID + `", "at": 1}, {"id": "7"}]}`,
			strings.Replace(listed, `"*"`, `1`, 1),
		},
	} {
		known := values{"task": anID}
		got, err := known.reviseJSON(c.pattern, []byte(c.got))
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
		if err := known.matchJSON(got, []byte(c.got)); err != nil {
			t.Errorf("%s: what was revised does not match: %v", name, err)
		}
	}
}

// TestRewrite holds that a step without an answer gets one, and that the other steps,
// the captures and the sentences stay.
func TestRewrite(t *testing.T) {
	*update = true
	t.Cleanup(func() { *update = false })
	path := filepath.Join(t.TempDir(), "x.txtar")
	before := "A talk.\n\n-- first --\nGET /a\n=> 200\n{\"id\":  \"<task>\"}\n\n-- second --\nGET /b\n\n-- third --\nGET /c\n=> " +
		"200\n{\"a\": 1}\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	tr, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	if at := tr.at(tr.steps[1]); at != path+":8" {
		t.Errorf("the second step is at %s", at)
	}
	k := talk{transcript: tr, known: values{"task": anID}}
	for i, body := range []string{"", `{"of": "` + anID + `", "at": "` + aTime + `"}`, `{"type": "x/problems/gone"}`} {
		if body == "" {
			continue // it matches
		}
		a := answer{
			&http.Response{StatusCode: 198 + 2*i + 200*(i/2), Header: http.Header{"Content-Type": {"application/json"}}},
			[]byte(body),
		}
		if err := k.revise(&tr.steps[i], a); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.rewrite(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("GET /b\n", "GET /b\n=> 200\n{\"of\": \"<task>\", \"at\": \"*\"}\n",
		"GET /c\n=> 200\n{\"a\": 1}", "GET /c\n=> 402\n{\"type\": \"x/problems/gone\"}").Replace(before)
	if string(after) != want {
		t.Errorf("rewritten as\n%s\nwant\n%s", after, want)
	}
}
