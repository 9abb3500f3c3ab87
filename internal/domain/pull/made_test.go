package pull

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// other is a host that merges something else.
type other struct {
	codehost.Host
	y *yard
}

func (h other) Merge(_ context.Context, _ codehost.Repo, o codehost.MergeOptions) (string, error) {
	h.y.git("merge", "--quiet", "--no-ff", "--no-commit", o.Head)
	h.y.file("evil", "1\n")
	h.y.git("add", "--all")
	h.y.git("commit", "--quiet", "--message", "Merge it")
	h.y.push("main")
	return h.y.git("rev-parse", "main"), nil
}

// A merge that makes other content than was tried is an alarm.
func TestMergeOtherwiseThanShown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.green("svc/a", sha)
		honest := y.host.Host
		y.host.Host = other{honest, y}
		y.approve(pr, sha)
		y.pass(0)
		got := y.pr(pr)
		if got.State != record.Merged || got.Otherwise == nil || !strings.Contains(*got.Otherwise, ": evil.") {
			t.Fatalf("merged otherwise: %+v", got)
		}
		if !slices.Contains(y.asked, "merged_otherwise") {
			t.Errorf("the escalations are %v", y.asked)
		}
		y.write(func(tx *db.Tx) error {
			kinds, err := audited.All(tx, "acme")
			if !slices.Contains(kinds, "pr.merged_otherwise") {
				t.Errorf("the audit trail is %v", kinds)
			}
			return err
		})
		if head, err := y.host.Head(y.ctx(), webRepo, "svc/a"); head != sha || err != nil {
			t.Errorf("the branch that was merged otherwise is at %s, %v", head, err)
		}

		// What the base has through another branch is no difference.
		y.host.Host = honest
		y.git("checkout", "--quiet", "main")
		inner := y.commit("svc/b", "b", "1\n")
		outer := y.above("svc/c", "svc/b", func() { y.file("c", "1\n") })
		in, out := y.green("svc/b", inner), y.green("svc/c", outer)
		y.approve(in, inner)
		y.approve(out, outer)
		if _, err := honest.Merge(y.ctx(), webRepo, codehost.MergeOptions{Base: "main", Head: "svc/c", HeadSHA: outer,
			Method: codehost.MethodMerge, Title: "Outer", Author: y.Bot, Committer: y.Bot}); err != nil {
			t.Fatal(err)
		}
		y.pass(time.Second)
		for _, id := range []string{in, out} {
			if got := y.pr(id); got.State != record.Merged || got.Otherwise != nil {
				t.Errorf("merged by another: %+v", got)
			}
		}
	})
}

// What the queue of a host has merged is compared as well, after the host has told of it.
func TestQueueOfTheHostMergesOtherwise(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.settle()
		y.checkedThere(sha, record.ChecksPassed)
		y.line.on, y.line.atHost = true, true
		y.approve(pr, sha)
		y.pass(0)
		p := k.pulls[0]
		p.Open, p.Merged = false, true
		var err error
		if p.MergeSHA, err = (other{y: y}).Merge(y.ctx(), webRepo, codehost.MergeOptions{Head: "svc/a"}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // a delivery may come twice
			k.says(p)
		}
		if got := y.pr(pr); got.State != record.Merged || got.Otherwise == nil || !strings.Contains(*got.Otherwise, ": evil.") {
			t.Errorf("merged otherwise: %+v", got)
		}
		if n := slices.Index(y.asked, "merged_otherwise"); n < 0 || slices.Contains(y.asked[n+1:], "merged_otherwise") {
			t.Errorf("the escalations are %v", y.asked)
		}
	})
}
