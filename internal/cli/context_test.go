package cli

import (
	"strings"
	"testing"

	"yardmaster/internal/proof/rig"
)

// Who signs in under YARDMASTER_CONTEXT signs into that context, which may be new, as with --context; the flag
// comes before it.
func TestLoginIntoTheContextOfTheEnvironment(t *testing.T) {
	t.Parallel()
	y := yard(t)
	p := newPerson(t)
	plain := p.env
	login := func(env string, args ...string) string {
		t.Helper()
		p.env = plain
		if env != "" {
			p.env = append(plain[:len(plain):len(plain)], "YARDMASTER_CONTEXT="+env)
		}
		out, code := p.terminal(append([]string{"auth", "login", "--login", "ada"}, args...), step{"Password: ", rig.Password + "\r"})
		if code != 0 {
			t.Fatalf("under %q, %q: %s", env, args, out)
		}
		return out
	}
	login("first", "--url", y.URL)
	if out := login("second"); !strings.Contains(out, "The context second is new: you sign in to "+y.URL) {
		t.Errorf("a context that is new is not told: %s", out)
	}
	login("second", "--context", "third")
	login("first")
	p.env = plain
	out, code := p.terminal([]string{"auth", "list", "--jq", ".[] | .context"})
	if got := strings.Join(strings.Fields(out), " "); code != 0 || got != "first second third" {
		t.Errorf("%d: the contexts are %q", code, got)
	}
	if out, _ := p.terminal([]string{"auth", "status"}); !strings.Contains(out, "first") {
		t.Errorf("the last login is not used: %s", out)
	}
}
