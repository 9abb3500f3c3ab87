package github

import (
	"errors"
	"strings"
	"testing"

	"context"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
	peer "yardmaster/internal/proof/github"
)

// TestLimitsOfTheHost holds that the answers of GitHub reach the limits: after a refusal
// nothing is asked, and urgency comes from the context.
func TestLimitsOfTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{Limits: peer.Limits{Primary: 10}})
	w.host = w.connect(func(c *Config) { c.Limits = nil })
	ctx := t.Context()
	w.repo.OpenIssue(w.bob, "x", "")
	ask := func(ctx context.Context) error { _, _, err := w.host.Issue(ctx, w.shop, 1, ""); return err }
	n := 0
	for ; n < 20; n++ {
		if ask(ctx) != nil {
			break
		}
	}
	if n != 8 { // runs leave a fifth
		t.Errorf("%d requests of 10 passed", n)
	}
	for n = 0; n < 20; n++ {
		if ask(codehost.WithUrgency(ctx, codehost.ForPeople)) != nil {
			break
		}
	}
	if n != 2 {
		t.Errorf("people had %d requests", n)
	}
	used := w.inst.Used()
	if e := as[*codehost.BusyError](t, "spent", ask(ctx)); !e.Limit || !errors.Is(e, pace.ErrPace) || w.inst.Used() != used {
		t.Errorf("it says %+v, and %d were asked", e, w.inst.Used()-used)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	long := "```go\n" + strings.Repeat("é\n", 25000)
	for name, s := range map[string]string{"short": "x", "long": long, "not UTF-8": "a\xff\x00b"} {
		got := marked(s, once1)
		if len(got) > longest+100 || !strings.Contains(got, marker(once1)) || unmarked(got) == got {
			t.Errorf("%s: %d bytes, ends %q", name, len(got), got[max(0, len(got)-60):])
		}
	}
	if got := unmarked(marked("Hello.\n\nBye.", once1)); got != "Hello.\n\nBye." {
		t.Errorf("back comes %q", got)
	}
	if got := marked("x "+marker(once2), once1); strings.Contains(got, marker(once2)) {
		t.Errorf("a marker of the text counts: %q", got)
	}
	if at := since(once1); at.IsZero() {
		t.Error("the id of an intent tells no time")
	}
	if at := since("not a UUID"); !at.IsZero() {
		t.Errorf("a text tells %s", at)
	}
}
