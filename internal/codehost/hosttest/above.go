package hosttest

import (
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
)

// above holds what becomes of work on top of work that was squashed, and of a base that was
// rewritten, and that the commit of a merge is what Outcome has shown.
func above(t *testing.T, c clone) {
	h, r, ctx := c.site.Host, c.site.Repo, t.Context()
	c.branch("main", "", "a.txt", strings.Repeat("line\n", 20))
	low := c.branch("low", "main", "helper.txt", "new\n", "b.txt", "b\n")
	c.git("checkout", "-q", "-B", "high", "low")
	c.git("rm", "-q", "helper.txt")
	c.git("commit", "-q", "-m", "without the helper")
	c.git("push", "-q", "origin", "high")
	high := c.git("rev-parse", "HEAD")
	lower, upper := c.site.Pull(t, "low", "main"), c.site.Pull(t, "high", "main")
	merge := func(number int64, head, sha string, method codehost.Method) codehost.Outcome {
		t.Helper()
		o := must(h.Outcome(ctx, r, codehost.OutcomeOptions{Base: "main", Head: sha}))(t)
		made := must(h.Merge(ctx, r, codehost.MergeOptions{
			Number: number, Base: "main", Head: head, HeadSHA: sha, Method: method, Title: "Add it", Author: ann, Committer: ann,
		}))(t)
		m := must(h.Made(ctx, r, made, o.Tree))(t)
		if m.Tree != o.Tree || m.Differs != nil || len(m.Parents) == 0 || m.Parents[0] != o.BaseSHA {
			t.Errorf("%s was to be %s on %s, and is %+v", head, o.Tree, o.BaseSHA, m)
		}
		return o
	}
	merge(lower, "low", low, codehost.MethodSquash)
	before := must(h.Head(ctx, r, "main"))(t)
	o := merge(upper, "high", high, codehost.MethodSquash)
	gone := []codehost.Change{{Path: "helper.txt", Kind: codehost.Deleted, Deleted: 1}}
	switch {
	case lower == 0 && (!slices.Equal(o.Changes, gone) || o.Back != nil):
		t.Errorf("above a squash: %+v", o)
	case lower != 0 && (o.Changes != nil || !slices.Equal(o.Back, []string{"helper.txt"})): // the host merges by itself
		t.Errorf("above a squash, by its host: %+v", o)
	}
	m := must(h.Made(ctx, r, before, o.Tree))(t)
	if lower == 0 && !slices.Equal(m.Differs, []string{"helper.txt"}) {
		t.Errorf("compared with another tree: %+v", m)
	}

	// The base had what a branch was begun on.
	c.git("fetch", "-q", "origin", "main")
	old := c.branch("main", "FETCH_HEAD", "key.pem", "secret\n")
	work := c.branch("work", "main", "c.txt", "c\n")
	had := codehost.OutcomeOptions{Base: "main", Head: work, Had: []string{old, strings.Repeat("1", 40)}}
	if o := must(h.Outcome(ctx, r, had))(t); o.Back != nil || o.Dropped != 0 || o.Lost != nil {
		t.Errorf("before the base was rewritten: %+v", o)
	}
	c.branch("main", "main~1", "d.txt", "d\n")
	o = must(h.Outcome(ctx, r, had))(t)
	if !slices.Equal(o.Back, []string{"key.pem"}) || o.Dropped != 1 || !slices.Equal(o.Lost, []string{old}) {
		t.Errorf("after the base was rewritten: %+v", o)
	}
	// The base has deleted what the branch has, too.
	c.branch("main", "main", "key.pem", "secret\n")
	c.git("rm", "-q", "key.pem")
	c.branch("main", "HEAD", "e.txt", "e\n")
	o = must(h.Outcome(ctx, r, codehost.OutcomeOptions{Base: "main", Head: work}))(t)
	if !slices.Equal(o.Back, []string{"key.pem"}) || o.Dropped != 0 {
		t.Errorf("deleted in the base: %+v", o)
	}
}
