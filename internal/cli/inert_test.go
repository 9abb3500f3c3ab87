package cli

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/proof/chance"
)

// nasty is text that would set the title of a terminal, change colours, turn the
// direction of text, hide parts of it and begin lines of its own.
const nasty = "a\x1b]0;owned\x07\x1b[31m\u202eb\u009b2J\u200b\rc\nEVIL \u202e<b>%s{{.}}"

// filledWith is JSON of a type with nasty text in every member.
func filledWith(t reflect.Type, text string, depth int) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "2026-05-04T12:00:00Z"
	case depth > 5:
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		return text
	case reflect.Bool:
		return true
	case reflect.Slice, reflect.Array:
		return []any{filledWith(t.Elem(), text, depth+1), filledWith(t.Elem(), text, depth+1)}
	case reflect.Map:
		return map[string]any{text: filledWith(t.Elem(), text, depth+1)}
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" && f.IsExported() {
				out[name] = filledWith(f.Type, text, depth+1)
			}
		}
		return out
	case reflect.Interface:
		return map[string]any{text: text}
	}
	return 7
}

// Text in every member of every noun stays inert, in lists and views, in every form.
func TestEveryNounIsInert(t *testing.T) {
	colours := regexp.MustCompile("\x1b\\[[0-9]*m")
	inert := func(what, shown string) {
		t.Helper()
		if !strings.Contains(shown, "owned") {
			t.Errorf("%s shows nothing of the text: %q", what, shown)
		}
		for line := range strings.Lines(shown) {
			line = colours.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
			if strings.ContainsFunc(line, func(r rune) bool {
				return r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u200b'
			}) {
				t.Errorf("%s shows %q", what, line)
			}
		}
	}
	for _, n := range slices.Concat(noun.All(), noun.Below()) {
		o := capability.All()[n.List]
		answer := filledWith(o.Output(), nasty, 0)
		rows, ok := answer.(map[string]any)["data"]
		if !ok {
			t.Fatalf("%s answers no rows: %v", n.List, answer)
		}
		b, err := object.Encode(rows)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := n.People(&out, b); err != nil {
			t.Error(n.Name, err)
		}
		inert(n.Name+" list", out.String())
		one := rows.([]any)[0]
		if n.Get != "" {
			one = filledWith(capability.All()[n.Get].Output(), nasty, 0)
		}
		if b, err = object.Encode(one); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if err := n.View(&out, b); err != nil {
			t.Error(n.Name, err)
		}
		inert(n.Name+" view", out.String())
		for _, o := range []output.Flags{{Format: "json"}, {Format: "yaml"}, {Jq: "."}, {Jq: ".. | strings"}, {Template: "{{.}}"}} {
			out.Reset()
			if err := o.Print(&out, b); err != nil {
				t.Errorf("%s as %+v: %v", n.Name, o, err)
			}
			inert(fmt.Sprintf("%s as %+v", n.Name, o), out.String())
		}
	}
}

// Every command that changes something says how that is undone or what comes next, and
// every capability that the nouns name is there.
func TestActsSayWhatComesNext(t *testing.T) {
	t.Parallel()
	for _, n := range slices.Concat(noun.All(), noun.Below()) {
		if capability.All()[n.List] == nil || n.Get != "" && capability.All()[n.Get] == nil {
			t.Errorf("%s names capabilities that there are not", n.Name)
		}
		known := capability.Members(reflect.New(capability.All()[n.List].Output()).Elem().FieldByName("Data").Type().Elem())
		for _, c := range n.Columns {
			is := false
			for at := range strings.SplitSeq(c.At, "|") {
				first, _, _ := strings.Cut(at, ".")
				for _, name := range known {
					is = is || name == first
				}
			}
			if !is {
				t.Errorf("the rows of %s have no %s, but %q", n.Name, c.At, known)
			}
		}
	}
	acts := 0
	for _, c := range commands() {
		a, _ := c.Does.(*act.Act)
		if a == nil {
			continue
		}
		acts++
		o := capability.All()[a.Op]
		switch {
		case o == nil:
			t.Errorf("%s calls %s, which there is not", a.Words, a.Op)
		case o.Method != http.MethodGet && a.Next == "":
			t.Errorf("%s does not say what comes next", a.Words)
		}
	}
	if acts < 50 {
		t.Errorf("only %d acts were found", acts)
	}
}

// Random flags and arguments never make a command panic: each ends with a documented
// exit code.
func TestRandomFlags(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodies := []string{`{}`, `{"data": []}`, `{"data": [{"id": null}], "next_cursor": null}`, `[]`, `null`, `"x"`,
			`{"data": [7, "x", {"id": 3}]}`, ``, `{`,
			`{"id": "` + someID + `", "holds": [1], "data": null}`}
		w.Write([]byte(bodies[len(r.URL.String())%len(bodies)]))
	}))
	defer h.Close()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("YARDMASTER_URL", h.URL)
	t.Setenv("YARDMASTER_TOKEN", "t")
	t.Setenv("BROWSER", "true")
	t.Chdir(home)
	silent, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stdin, stderr := os.Stdout, os.Stdin, os.Stderr
	os.Stdout, os.Stdin, os.Stderr = silent, silent, silent
	defer func() { os.Stdout, os.Stdin, os.Stderr, signin.Context = stdout, stdin, stderr, "" }()
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	var runnable []tree.Command
	for _, s := range sections()[1:] { // those of the server start one
		for _, c := range s.Commands {
			switch c.Words {
			case "box join", "box run", "setup", "login", "auth login", "auth git", "box agents",
				"box agents install", "task watch", "session watch", "man":
			default:
				runnable = append(runnable, c)
			}
		}
	}
	words := []string{someID, "@last", "acme/web#3", "x", "", "-", "--", "a=b", "k:={", "p=@/none", "../..", "0000",
		"#1", "main", nasty, "-1", "null",
		"task.list", "template.set"}
	for range 200 {
		c := runnable[random.IntN(len(runnable))]
		args := strings.Fields(c.Words)
		var names []string
		root := wholeTree()
		of, _, _ := root.Find(args)
		of.Flags().VisitAll(func(f *flag.Flag) {
			if f.Name != "watch" && f.Name != "context" && f.Name != "editor" && f.Name != "help" {
				names = append(names, f.Name)
			}
		})
		for range random.IntN(5) {
			if len(names) > 0 && random.IntN(2) == 0 {
				name := names[random.IntN(len(names))]
				args = append(args, "--"+name+"="+words[random.IntN(len(words))])
			} else {
				args = append(args, words[random.IntN(len(words))])
			}
		}
		signin.Context = ""
		code, out, errs := told(args...)
		switch code {
		case 0, exit.CodeFailed, exit.CodeMisused, exit.CodeRefused, exit.CodeNoAnswer, exit.CodeNoLogin, exit.CodeNotFound:
		default:
			t.Errorf("seed %d: %q: exit code %d", seed, args, code)
		}
		if client.Escape(out+errs) != out+errs {
			t.Errorf("seed %d: %q writes %q", seed, args, out+errs)
		}
	}
}
