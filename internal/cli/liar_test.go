package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/client"
)

// shelled is nasty text that a shell would carry out.
const shelled = "x'\"; touch owned $(touch owned) `touch owned` | sh" + nasty

// liar answers every capability with nasty text in every member, in members that there
// are not, and for ids; every third call is refused with a problem of the same kind.
func liar(t *testing.T) http.Handler {
	t.Helper()
	type route struct {
		method string
		path   *regexp.Regexp
		answer []byte
	}
	var routes []route
	for _, o := range capability.All() {
		body := any(map[string]any{})
		if o.Output() != nil {
			body = filledWith(o.Output(), shelled, 0)
		}
		if m, ok := body.(map[string]any); ok {
			m[shelled] = strings.Repeat(shelled+"\n", 5)
			m["a"+shelled] = []any{map[string]any{shelled: shelled}}
			m["next_cursor"] = nil
		}
		b, err := object.Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		path := regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(o.Path), ".+")
		routes = append(routes, route{o.Method, regexp.MustCompile("^" + path + "$"), b})
	}
	refusal, err := object.Encode(map[string]any{"type": "/problems/" + shelled, "title": shelled, "detail": shelled, "status": 200,
		"errors": map[string][]string{shelled: {shelled}}, "request_id": shelled, "current_head_sha": shelled, "retry_after": 1 << 62,
		"action_id": shelled, "question": shelled, "missing_scopes": []string{"admin:" + shelled},
		"clear": map[string]any{"capability": "pr.merge", "args": map[string]string{"id": shelled}}})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls%3 == 0 {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write(refusal)
			return
		}
		for _, of := range routes {
			if of.method == r.Method && of.path.MatchString(r.URL.Path) {
				_, _ = w.Write(of.answer)
				return
			}
		}
		_, _ = io.WriteString(w, shelled)
	})
}

// Nothing that a server says controls the terminal of whoever calls it, nor does it stand
// in a command that is shown for people to copy, but as one quoted word.
func TestServerThatLies(t *testing.T) {
	h := httptest.NewServer(liar(t))
	defer h.Close()
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": filepath.Join(home, "cache"),
		"YARDMASTER_URL": h.URL, "YARDMASTER_TOKEN": "t", "BROWSER": "true"} {
		t.Setenv(name, value)
	}
	t.Chdir(home)
	stdout, stdin, stderr := os.Stdout, os.Stdin, os.Stderr
	defer func() { os.Stdout, os.Stdin, os.Stderr, signin.Context = stdout, stdin, stderr, "" }()
	silent, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	os.Stdin = silent
	said := 0
	for _, s := range sections()[1:] { // those of the server start one
		for _, c := range s.Commands {
			switch c.Words {
			case "box join", "box run", "setup", "login", "auth login", "auth git", "auth logout", "box agents", "box agents install",
				"task watch", "session watch", "man", "completion", "git-credential", "repo add", "doctor":
				continue
			}
			args := strings.Fields(c.Words)
			for _, name := range c.Wants() {
				word := someID
				if strings.Contains(name, "OWNER/NAME") {
					word = "acme/web"
				}
				args = append(args, word)
			}
			if slices.Contains(flagsOf(c.Words), "repo") {
				args = append(args, "--repo=acme/web")
			}
			for range 3 { // of which one is refused
				all := printed(t, args)
				if strings.Contains(all, "owned") {
					said++
				}
				if client.Escape(all) != all && c.Words != "pr diff" { // whose patch is for programs, byte for byte
					t.Errorf("%q writes %q", args, all)
				}
				for line := range strings.Lines(all) {
					if _, command, ok := strings.Cut(line, ": yardmaster "); ok && bare(command) {
						t.Errorf("%q shows a command that does more than it says: %s", args, line)
					}
				}
			}
		}
	}
	if said < 100 {
		t.Errorf("only %d answers were shown", said)
	}
}

// bare tells whether a command has the text of the server outside of a quoted word.
func bare(command string) bool {
	plain := regexp.MustCompile(`'[^']*'|\\'`).ReplaceAllString(command, "")
	return strings.Contains(plain, "owned") && strings.ContainsAny(plain, "$`;|")
}

// printed is all that a command writes to standard output and standard error.
func printed(t *testing.T, args []string) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "said")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	os.Stdout, os.Stderr, signin.Context = f, f, ""
	_, out, errs := told(args...)
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + out + errs
}
