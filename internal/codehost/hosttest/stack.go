package hosttest

import (
	"slices"
	"testing"

	"yardmaster/internal/codehost"
)

// stack holds the candidates of merge queues.
func stack(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	base := c.branch("main", "", "README", "hello\n")
	a := c.branch("a", "main", "a", "1\n")
	b := c.branch("b", "main", "b", "2\n")
	rival := c.branch("rival", "main", "a", "other\n")
	on := func(heads ...string) codehost.Stacked {
		t.Helper()
		return must(h.Stack(ctx, r, codehost.StackOptions{BaseSHA: base, Heads: heads, Title: "try 1", Author: ann}))(t)
	}
	one := on(a)
	if one.Conflict != -1 || one.SHA == a || len(one.HeadTrees) != 1 || one.Tree != one.HeadTrees[0] {
		t.Errorf("a head on its base is the tree of the head: %+v", one)
	}
	both := on(a, b)
	if both.Conflict != -1 || both.Tree == one.Tree || both.Tree == both.HeadTrees[1] {
		t.Errorf("two heads: %+v", both)
	}
	if again := on(b, a); again.Tree != both.Tree || again.SHA == both.SHA {
		t.Errorf("the order changes %+v to %+v", both, again)
	}
	if none := on(base); none.SHA != base || none.Conflict != -1 {
		t.Errorf("what the base has: %+v", none)
	}
	if clash := on(a, b, rival); clash.Conflict != 2 || clash.Tree != "" {
		t.Errorf("a conflict: %+v", clash)
	}
	name := codehost.QueuePrefix + "main-12345678"
	if err := h.PutBranch(ctx, r, name, both.SHA); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"a": "1\n", "b": "2\n", "README": "hello\n"} {
		text, _, err := h.ReadFile(ctx, r, name, path)
		if err != nil || string(text) != want {
			t.Errorf("%s of the candidate is %q, %v", path, text, err)
		}
	}
	other := on(b)
	if err := h.PutBranch(ctx, r, name, other.SHA); err != nil {
		t.Errorf("moved: %v", err)
	}
	wants(t, "a branch of people", h.PutBranch(ctx, r, "main", other.SHA), codehost.ErrNotFound)
	if now := must(h.Head(ctx, r, "main"))(t); now != base {
		t.Errorf("main is at %s", now)
	}
	if err := h.DeleteBranch(ctx, r, name, other.SHA); err != nil {
		t.Errorf("deleted: %v", err)
	}
	if all := (codehost.Access{Push: []string{"refs/heads/*"}}); !all.MayPush("refs/heads/main") ||
		slices.ContainsFunc([]string{name, "svc/QUEUE/x"}, func(b string) bool { return all.MayPush("refs/heads/" + b) }) {
		t.Error("who may push branches may push those of merge queues")
	}
}
