package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/proof/rig"
)

// An answer comes with its lines, one citation a line; without an answer the exit code is 1. The
// model is the one of the demo, about the repository of the demo.
func TestRepositoryIsAsked(t *testing.T) {
	t.Parallel()
	const demo = "../demo/"
	y := yard(t, "--scenario", demo+"scenario.yml")
	files := map[string]string{}
	for _, name := range []string{"README.md", "slug.sh", "test.sh"} {
		b, err := os.ReadFile(filepath.Join(demo, "sample", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	if err := y.Push("acme/slug", files); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := newPerson(t)
	run := func(want int, argv ...string) string {
		t.Helper()
		out, code := p.program(append([]string{self}, argv...))
		if code != want {
			t.Fatalf("%q: exit code %d, want %d\n%s", argv, code, want, out)
		}
		return strings.ReplaceAll(out, "\r\n", "\n")
	}
	if out, code := p.terminal([]string{"auth", "login", "--url", y.URL, "--login", "ada"}, step{"Password: ",
		rig.Password + "\r"}); code != 0 {
		t.Fatal(out)
	}
	if out := run(exit.CodeRefused, "repo", "ask", "acme/slug", "What does slug.sh print?"); !strings.Contains(out, "no key") {
		t.Errorf("without a key: %s", out)
	}
	run(0, "call", "billing.key_add", "provider=scripted")
	out := run(0, "repo", "ask", "acme/slug", "What does slug.sh", "print?")
	if !strings.Contains(out, "in an address\" [1].\n[1] slug.sh:2  # slug TEXT: prints TEXT as a name that is safe in an address.\n") {
		t.Errorf("the answer: %s", out)
	}
	if out := run(0, "repo", "ask", "acme/slug", "What does slug.sh print?", "--jq", ".citations[0].cite"); out != "slug.sh:2\n" {
		t.Errorf("for programs: %q", out)
	}
	out = run(exit.CodeFailed, "repo", "ask", "acme/slug", "Zyzzyva quixotry?")
	if !strings.Contains(out, "No line of the default branch") {
		t.Errorf("no answer: %s", out)
	}
	run(exit.CodeNotFound, "repo", "ask", "acme/none", "What is it?")
	if out := run(exit.CodeFailed, "repo", "ask", "slug", "What is it?"); !strings.Contains(out, "none of its sentences was borne out") {
		t.Errorf("lines that were not shown: %s", out)
	}
}
