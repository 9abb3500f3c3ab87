package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
)

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		n    int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"list", "list", 0}, {"lisst", "list", 1}, {"lsit", "list", 1}, {"kitten", "sitting", 3},
		{"stauts", "status", 1}, {"ab", "cd", 2}} {
		if n := capability.Edits(c.a, c.b); n != c.n {
			t.Errorf("%q to %q: %d edits, not %d", c.a, c.b, n, c.n)
		}
		if n := capability.Edits(c.b, c.a); n != c.n {
			t.Errorf("%q to %q: %d edits, not %d", c.b, c.a, n, c.n)
		}
	}
	if got := capability.Near("stat", []string{"state", "status", "limit"}); !slices.Equal(got, []string{"state", "status"}) {
		t.Errorf("near stat are %q", got)
	}
}

// What is mistyped in a flag, a capability or an input is told with what was meant, and what
// is far from everything without.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, says string }{
		{"task list --stauts failed", "there is no flag --stauts; did you mean --status?"},
		{"task create --repos a/b x", "there is no flag --repos; did you mean --repo?"},
		{"task list --contxt x", "there is no flag --contxt; did you mean --context?"},
		{"task list --nonsense", "there is no flag --nonsense\n"},
		{"call task.lisst", `there is no capability "task.lisst"; did you mean task.list?` + "\n"},
		{"call taks.list filter=status:failed", `there is no capability "taks.list"; did you mean task.list?`},
		{"call zzzzzzzzzz", `there is no capability "zzzzzzzzzz"; ` + "`yardmaster call` lists them"},
		{"call task.cancel di=1", `task.cancel has no input "di"; did you mean id=?`},
	} {
		code, out, errs := yardmaster(t, strings.Fields(c.args)...)
		if code != exit.CodeMisused || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d\n%s%s", c.args, code, out, errs)
		}
	}
}

// The help of a capability that there is not names the one that was meant.
func TestHelpOfNoCapability(t *testing.T) {
	t.Parallel()
	code, out, errs := yardmaster(t, "call", "task.lisst", "-h")
	if code != 0 || !strings.HasPrefix(out, "usage: yardmaster call") || !strings.Contains(errs, "did you mean task.list?") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// Who is not signed in, or no longer, is told the whole command that signs in.
func TestSignInIsNamed(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"type": "/problems/unauthenticated", "status": 401, "detail": "No."}`))
	}))
	defer h.Close()
	p := newPerson(t, "YARDMASTER_URL="+h.URL)
	out, code := p.terminal([]string{"task", "list"})
	if code != exit.CodeNoLogin || !strings.Contains(out, "run `yardmaster auth login --url "+h.URL+"`") {
		t.Errorf("without a token: exit code %d\n%s", code, out)
	}
	p.env = append(p.env, "YARDMASTER_TOKEN=t")
	out, code = p.terminal([]string{"task", "list"})
	if code != exit.CodeNoLogin || !strings.Contains(out, "unset that, and `yardmaster auth login --url "+h.URL+"` gets another") {
		t.Errorf("with a token of the environment: exit code %d\n%s", code, out)
	}
	p = newPerson(t)
	p.signedIn(`{"current": "work", "contexts": {"work": {"url": "` + h.URL + `", "token": "t"}}}`)
	out, code = p.terminal([]string{"task", "list"})
	if code != exit.CodeNoLogin || !strings.Contains(out, "`yardmaster auth login --context work --url "+h.URL+"` gets another") {
		t.Errorf("with a stored token: exit code %d\n%s", code, out)
	}
}

// signedIn writes the file of logins.
func (p *person) signedIn(logins string) {
	p.t.Helper()
	dir := filepath.Join(p.home, ".config", "yardmaster")
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "login.json"), []byte(logins), 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// A context that there is not is a misuse, which names those there are: by flag and by
// variable, of commands that call a server and of those that do not.
func TestUnknownContext(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for _, args := range [][]string{{"task", "list", "--context", "nope"}, {"open", "--print", "--context", "nope"}} {
		out, code := p.terminal(args)
		if code != exit.CodeMisused || !strings.Contains(out, "there is no context nope, nor any other") ||
			!strings.Contains(out, "yardmaster auth login --context nope --url ADDRESS") {
			t.Errorf("%q: exit code %d\n%s", args, code, out)
		}
	}
	p.signedIn(`{"current": "home", "contexts": {"home": {"url": "http://127.0.0.1:1", "token": "t"}, "work": {"url": "http://127.0.0.1:2"}}}`)
	for _, args := range [][]string{{"task", "list"}, {"open", "--print"}, {"open", "task", someID, "--print"}, {"auth", "status"},
		{"auth", "logout"}, {"repo", "create", "web"}, {"call", "task.list"}, {"status"}} {
		out, code := p.terminal(append(args, "--context", "nope"))
		if code != exit.CodeMisused || !strings.Contains(out, "there is no context nope; there are home, work") {
			t.Errorf("%q: exit code %d\n%s", args, code, out)
		}
	}
	// Who signs in makes it, at the server of the one in use.
	out, code := p.terminal([]string{"auth", "login", "--context", "nope", "--login", "ada"}, step{"Password", "long-enough\r"})
	if code != exit.CodeNoAnswer || !strings.Contains(out, "The context nope is new: you sign in to http://127.0.0.1:1.") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	p.env = append(p.env, "YARDMASTER_CONTEXT=other")
	if out, code := p.terminal([]string{"task", "list"}); code != exit.CodeMisused ||
		!strings.Contains(out, "there is no context other; there are") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	out, code = p.terminal([]string{"task", "list", "--context", "work"})
	if code != exit.CodeNoLogin || !strings.Contains(out, "yardmaster auth login --context work --url http://127.0.0.1:2") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// Who signs out of a context, named by flag or by variable, is told the command that signs in to that one again.
func TestLogoutNamesItsContext(t *testing.T) {
	t.Parallel()
	const logins = `{"current": "home", "contexts": {"home": {"url": "http://127.0.0.1:1", "token": "t"},
		"other": {"url": "http://127.0.0.1:1", "token": "t"}}}`
	p := newPerson(t)
	for name, line := range map[string]string{"home": "auth logout --keep", "other": "auth logout --keep --context other"} {
		p.signedIn(logins)
		p.holds(line, 0, "`yardmaster auth login --context "+name+" --url http://127.0.0.1:1` gets another.")
	}
	p.signedIn(logins)
	p.env = append(p.env, "YARDMASTER_CONTEXT=other")
	p.holds("auth logout --keep", 0, "--context other ")
	p.holds("auth list", 0, "home", "!other")
}
