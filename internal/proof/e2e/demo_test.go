package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The demo at the stand-in for GitHub, as a process: it says what it is not, comes to its
// end within its deadline, and leaves nothing behind. The proxies of its environment, behind which
// nothing is, are not asked for what is on this machine, by git neither.
func TestDemoAtStandIn(t *testing.T) {
	t.Parallel()
	temp, err := os.MkdirTemp(root, "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(temp, 0o711); err != nil { // agents of a box that runs as root pass through it
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), binary, "demo", "--once", "--github")
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		c.Env = append(c.Env, name+"=http://127.0.0.1:9")
	}
	c.Env = append(c.Env, "no_proxy=", "NO_PROXY=")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := string(out)
	for _, step := range []string{
		"It is not GitHub", `opened the issue #1 there`, `The judge made the task`, `Pull request #\d+ is open there`,
		`has ended there: success`, `Approved the head`, `pull +#\d+ merged`, `Said at the issue: An agent works on this\.`,
		`Said at the issue: Done in #\d+\.`, `The issue #1 is closed there`, `all 4 tests pass`, `It was not GitHub`,
	} {
		at := regexp.MustCompile(step).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("it does not say %q in its turn:\n%s", step, out)
		}
		rest = rest[at[1]:]
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if len(names) > 0 {
		t.Errorf("it leaves %s", strings.Join(names, ", "))
	}
}
