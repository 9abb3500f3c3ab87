package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/proof/rig"
)

// A folder that was put on the server has a remote there, commands in it need no --repo,
// and git signs in by the login.
func TestCloneKnowsItsRepository(t *testing.T) {
	t.Parallel()
	y := yard(t)
	p := newPerson(t, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	dir := filepath.Join(p.home, "calc")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	must := func(argv ...string) string {
		t.Helper()
		out, code := p.program(argv)
		if code != 0 {
			t.Fatalf("%q: exit code %d\n%s", argv, code, out)
		}
		return out
	}
	must("sh", "-c",
		`cd calc && git init -q -b main && echo a > a && git add a && git -c user.name=A -c user.email=a@example.com commit -qm begin`)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The token of the login alone signs in: no variable has it.
	if out, code := p.terminal([]string{"auth", "login", "--url", y.URL, "--login", "ada"}, step{"Password: ",
		rig.Password + "\r"}); code != 0 {
		t.Fatal(out)
	}
	if out := must(self, "repo", "add", "calc"); !strings.Contains(out, "yardmaster repo remove acme/calc") {
		t.Errorf("it does not say how it is undone: %s", out)
	}
	out := must("sh", "-c", `"$0" repo add calc 2>&1 >/dev/null | cat`, self) // no terminal
	if !strings.HasPrefix(out, "Pushing calc to "+y.URL+"/git/acme/calc.git\r\nTake it out of use with: yardmaster repo remove acme/calc\r\n") {
		t.Errorf("it says %q of its progress", out)
	}
	if out := must("git", "-C", "calc", "remote", "get-url", "yardmaster"); strings.TrimSpace(out) != y.URL+"/git/acme/calc.git" {
		t.Errorf("the remote is %q", out)
	}
	p.home = dir // the folder in which commands are run
	id, _, _ := strings.Cut(must(self, "task", "create", "Add b to a."), "\r\n")
	if out := must(self, "task", "view", id[:8], "--jq", ".repo"); strings.TrimSpace(out) != "acme/calc" {
		t.Errorf("the task is one of %q", out)
	}
	if out := must(self, "issue", "list"); !strings.Contains(out, "There are none") {
		t.Errorf("issues: %s", out)
	}
	must(self, "auth", "git")
	must("git", "fetch", "yardmaster")
	asks := func(host string) string {
		return must("sh", "-c", `printf 'protocol=http\nhost=%s\n\n' "$1" | "$0" git-credential get`, self, host)
	}
	if out := asks(strings.TrimPrefix(y.URL, "http://")); !strings.Contains(out,
		"username=token") || !strings.Contains(out, "password=dev_pat_") {
		t.Errorf("the helper answers %q", out)
	}
	if out := asks("evil.example.com"); strings.TrimSpace(out) != "" {
		t.Errorf("the helper answers a stranger %q", out)
	}
}

// A second context is used for one command, or from then on; a token ends with its logout.
func TestContexts(t *testing.T) {
	t.Parallel()
	one, two := yard(t), yard(t)
	p := newPerson(t)
	login := func(args ...string) {
		t.Helper()
		out, code := p.terminal(append([]string{"auth", "login", "--login", "ada"}, args...), step{"Password: ", rig.Password + "\r"})
		if code != 0 {
			t.Fatal(out)
		}
	}
	login("--url", one.URL)
	login("--url", two.URL, "--context", "second")
	out, code := p.terminal([]string{"auth", "login", "--url", one.URL, "--context", "x", "--login", "ada", "--account", "nobody"},
		step{"Password: ", rig.Password + "\r"})
	if code != exit.CodeRefused || !strings.Contains(out, "names no account") {
		t.Errorf("%d %s", code, out)
	}
	login("--url", two.URL, "--context", "second", "--account", "acme")
	at := func(args ...string) string {
		t.Helper()
		out, code := p.terminal(append(args, "open", "--print"))
		if code != 0 {
			t.Fatal(out)
		}
		return strings.TrimSpace(out)
	}
	if got := at(); got != two.URL+"/ui/" {
		t.Errorf("the last login is not used: %s", got)
	}
	if got := at("--context", "default"); got != one.URL+"/ui/" {
		t.Errorf("--context is not used: %s", got)
	}
	if out, code := p.terminal([]string{"auth", "use", "default"}); code != 0 || !strings.Contains(out,
		"Undo: yardmaster auth use second") {
		t.Errorf("%d %s", code, out)
	}
	if got := at(); got != one.URL+"/ui/" {
		t.Errorf("the context is not changed: %s", got)
	}
	token, _ := p.terminal([]string{"auth", "token"})
	if resp, _ := one.Send("GET", "/v1/me", strings.TrimSpace(token), ""); resp.StatusCode != 200 {
		t.Fatalf("the token is not good: %d", resp.StatusCode)
	}
	if out, code := p.terminal([]string{"auth", "logout"}); code != 0 {
		t.Fatal(out)
	}
	one.Eventually("the token ends", func() bool {
		resp, _ := one.Send("GET", "/v1/me", strings.TrimSpace(token), "")
		return resp.StatusCode == 401
	})
	if out, code := p.terminal([]string{"auth", "status", "--context", "default"}); code != exit.CodeMisused ||
		!strings.Contains(out, "no context") {
		t.Errorf("%d %s", code, out)
	}
}
