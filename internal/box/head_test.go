package box_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/protocol"
)

// TestHeadOfAForkIsCheckedOut holds that a commit which no branch has is fetched by its
// ref, and that the commit counts, not where the ref is by now.
func TestHeadOfAForkIsCheckedOut(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	work := t.TempDir()
	git(t, work, "init", "-q", "--initial-branch=better")
	commit := func(text string) string {
		if err := os.WriteFile(filepath.Join(work, "fork.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git(t, work, "add", "fork.txt")
		git(t, work, "commit", "-q", "-m", text)
		return git(t, work, "rev-parse", "HEAD")
	}
	first := commit("of the fork")
	next := commit("later")
	git(t, work, "checkout", "-q", "--orphan", "else")
	other := commit("something else")
	p.start(p.config())
	for i, c := range []struct {
		at, checkout, ref, state string
	}{
		{other, first, "refs/pull/7/head", protocol.Failed},    // the fork was forced elsewhere before anybody fetched it
		{first, first, "", protocol.Failed},                    // no ref was named
		{first, first, "refs/pull/8/head", protocol.Failed},    // there is no such ref
		{next, first, "refs/pull/7/head", protocol.Succeeded},  // the ref has moved on
		{first, first, "refs/pull/7/head", protocol.Succeeded}, // it is there
	} {
		git(t, work, "push", "-q", "--force", p.repo, c.at+":refs/pull/7/head")
		run := p.task(func(s *protocol.Start) {
			s.Kind, s.Branch, s.Agent, s.Command = "review", "", "command", []string{"cat", "fork.txt"}
			s.Checkout, s.CheckoutRef = c.checkout, c.ref
		})
		_, f := p.finish(run)
		if f.State != c.state || f.State == protocol.Succeeded && !strings.Contains(f.Output, "of the fork") ||
			f.State == protocol.Failed && f.Kind != "checkout_failed" {
			t.Errorf("%d: %+v", i, f)
		}
	}
}
