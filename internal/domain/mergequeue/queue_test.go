package mergequeue

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	_ "yardmaster/internal/proof/chance" // seeds rapid
	"yardmaster/internal/proof/seed"
)

// step has the orders tried, and the queue move.
func (y *yard) step(orders ...*order) {
	for range 3 {
		for _, o := range orders {
			y.apply(0, o, false)
		}
		y.nodes[0].Pass(y.ctx())
	}
	for range len(orders) + 1 {
		for _, o := range orders {
			y.apply(0, o, false)
		}
	}
}

// A head that stands on the base as it is was checked already: it is merged without a
// check of the same files.
func TestAloneAndCurrent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		a := y.approve("a")
		y.step(a)
		if !a.merged || y.forge.checked != 0 || len(y.forge.refs) != 0 {
			t.Errorf("merged %t after %d checks, branches %v", a.merged, y.forge.checked, y.forge.refs)
		}
	})
}

// The head of a fork is merged on its own: no branch of ours has it, and no check of ours
// runs it. One that stands in line from before leaves.
func TestForkIsInNoBatch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		a, b, fork, before := y.approve("a"), y.approve("b"), y.approve("fork"), y.approve("before")
		fork.fork = true
		y.apply(0, before, false)
		before.fork = true
		y.step(a, b, fork, before)
		if !fork.merged || !before.merged || a.merged || b.merged {
			t.Errorf("the forks are merged: %t %t, the others: %t %t", fork.merged, before.merged, a.merged, b.merged)
		}
		if len(y.checks) != 1 {
			t.Fatalf("candidates: %v", y.checks)
		}
		for sha := range y.checks {
			base := y.forge.heads[y.forge.base]
			if in := y.forge.heads[sha]; !slices.Equal(in, slices.Sorted(slices.Values(append(slices.Clone(base), a.head, b.head)))) {
				t.Errorf("the candidate has %v beside %v", in, base)
			}
		}
		y.rest()
		if !a.merged || !b.merged || len(y.forge.refs) != 0 {
			t.Errorf("merged %t %t, branches %v", a.merged, b.merged, y.forge.refs)
		}
	})
}

// strict is a host whose rules demand checks.
type strict struct {
	codehost.NoForge
	demands []codehost.RequiredCheck
}

// Can implements codehost.Forge.
func (*strict) Can(c codehost.Capability) bool { return c == codehost.KeepRules }

// BranchRules implements codehost.Forge.
func (s *strict) BranchRules(context.Context, codehost.Repo, string, codehost.Tag) (codehost.BranchRules, codehost.Tag, error) {
	return codehost.BranchRules{Required: s.demands}, "", nil
}

// Files that were checked are not checked again, as long as the rules of the base demand
// the same checks.
func TestOtherRulesCheckAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		one, two := codehost.RequiredCheck{Name: "build", Source: "1"}, codehost.RequiredCheck{Name: "test"}
		rules := &strict{demands: []codehost.RequiredCheck{one, two}}
		for i, c := range []struct {
			demands []codehost.RequiredCheck
			checked int
		}{
			{[]codehost.RequiredCheck{one, two}, 1}, {[]codehost.RequiredCheck{two, one}, 1}, {[]codehost.RequiredCheck{one}, 2},
			{[]codehost.RequiredCheck{{Name: "build", Source: "2"}}, 3}, {nil, 4}, {[]codehost.RequiredCheck{one}, 4},
		} {
			rules.demands = c.demands
			for n := range y.nodes {
				y.nodes[n].Hosts.Set(codehost.BuiltIn, codehost.Sides{Host: y.forge, Forge: rules})
			}
			y.forge.base = y.forge.commit([]string{"before"}) // the same files again
			o := y.approve(fmt.Sprint("o", i))
			o.head = "head"
			for range 4 {
				y.step(o)
				y.checkEnds(never0)
			}
			if !o.merged || y.forge.checked != c.checked {
				t.Errorf("%d: merged %t after %d checks, want %d", i, o.merged, y.forge.checked, c.checked)
			}
		}
	})
}

// Heads that were approved meanwhile are checked together once, and merged in order.
func TestTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		a, b, c := y.approve("a"), y.approve("b"), y.approve("c")
		y.step(a, b, c)
		q := y.shown()
		if len(q.Batches) != 1 || len(q.Batches[0].Members) != 3 || q.Batches[0].State != Checking || len(q.Waiting) != 0 {
			t.Fatalf("the queue is %+v", q)
		}
		for i, m := range q.Batches[0].Members {
			if m.Place.Position != int64(i+1) || m.Place.State != Batched || m.HeadSHA != []*order{a, b, c}[i].head {
				t.Errorf("place %d is %+v", i, m)
			}
		}
		if len(y.forge.refs) != 1 || a.merged {
			t.Fatalf("branches %v", y.forge.refs)
		}
		d := y.approve("d")
		y.step(d)
		if w := y.shown().Waiting; len(w) != 1 || w[0].PRID != d.pr || w[0].Place.Position != 4 {
			t.Errorf("behind the batch waits %+v", w)
		}
		y.checkEnds(never0)
		y.step(a, b, c)
		if !a.merged || !b.merged || !c.merged || y.forge.checked != 2 { // that of the batch, and that of the next one, which has begun
			t.Errorf("merged %t %t %t after %d checks", a.merged, b.merged, c.merged, y.forge.checked)
		}
		y.rest()
		if !d.merged || len(y.forge.refs) != 0 || len(y.shown().Batches) != 0 {
			t.Errorf("in the end: %+v, branches %v", y.shown(), y.forge.refs)
		}
	})
}

// A batch that fails is cut until the head is found that fails. The others are merged
// without another word, and no tree is checked twice.
func TestCulprit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		var all []*order
		for _, name := range []string{"a", "b", "c", "d"} {
			all = append(all, y.approve(name))
		}
		y.forge.bad[all[2].head] = true
		y.rest()
		for i, o := range all {
			if o.merged == (i == 2) {
				t.Errorf("%s: merged %t", o.pr, o.merged)
			}
		}
		if y.rejected[all[2].pr] != ByCheck || len(y.rejected) != 1 {
			t.Errorf("thrown out: %v", y.rejected)
		}
		var why, log string
		y.write(func(tx *db.Tx) (err error) {
			why, log, _, err = Failure(tx, all[2].pr, all[2].head)
			return err
		})
		if why != "together with main, the check exited with 1" || log == "" {
			t.Errorf("the agent is told %q, %q", why, log)
		}
		if y.forge.checked > 9 {
			t.Errorf("%d checks", y.forge.checked)
		}
	})
}

// A head that conflicts with one before it is tried on its own afterwards.
func TestConflictWithin(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		a, b, c := y.approve("a"), y.approve("b"), y.approve("c")
		y.forge.clashes = [][2]string{{a.head, b.head}}
		y.step(a, b, c)
		if q := y.shown(); len(q.Batches) != 1 || len(q.Batches[0].Members) != 2 || q.Batches[0].Members[1].PRID != c.pr {
			t.Errorf("the queue is %+v", q)
		}
		y.rest()
		if !a.merged || b.merged || !c.merged || y.rejected[b.pr] != ByConflict {
			t.Errorf("merged %t %t %t, thrown out %v", a.merged, b.merged, c.merged, y.rejected)
		}
	})
}

// The base moves, an order is taken back, or the policy ends the queue while a batch is
// checked: the batch begins anew with what is left.
func TestChangesOfMind(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		a, b := y.approve("a"), y.approve("b")
		y.step(a, b)
		stale := y.shown().Batches[0]
		y.forge.base = y.forge.commit([]string{sum("by hand")})
		y.checkEnds(never0)
		y.step(a, b)
		if now := y.shown(); a.merged || len(now.Batches) != 1 || now.Batches[0].ID == stale.ID {
			t.Errorf("after the base has moved: merged %t, %+v", a.merged, now)
		}
		a.open = false // cancelled
		y.step(b)
		if len(y.stopped) == 0 {
			t.Error("the check of a candidate that is of no use goes on")
		}
		y.checkEnds(never0)
		y.step(b)
		if a.merged || !b.merged {
			t.Errorf("merged %t %t", a.merged, b.merged)
		}
		c, d := y.approve("c"), y.approve("d")
		y.step(c, d)
		y.write(func(tx *db.Tx) error {
			_, err := seed.SetPolicy.Exec(tx, y.repo.ID, "merge: {queue: off}\n")
			y.repo.Policy.Merge.Queue = "off"
			return err
		})
		y.nodes[0].Pass(y.ctx())
		y.apply(0, c, false)
		y.apply(0, d, false)
		if !c.merged || !d.merged || len(y.shown().Batches) != 0 {
			t.Errorf("without the queue: merged %t %t, %+v", c.merged, d.merged, y.shown())
		}
	})
}

// What was checked with a head that has left is not merged without it, even if its check
// has passed meanwhile.
func TestNotWithoutTheOther(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.forge.base = y.forge.commit([]string{sum("before")})
		a, b := y.approve("a"), y.approve("b")
		y.forge.needs = [][2]string{{b.head, a.head}}
		y.step(a, b)
		y.checkEnds(never0)
		a.open = false
		y.rest()
		if b.merged || y.rejected[b.pr] != ByCheck {
			t.Errorf("merged %t, thrown out %v", b.merged, y.rejected)
		}
	})
}

// A check without a result is run again, and a person is asked after some in vain. A
// failure that may come and go is checked once more.
func TestLostAndFlaky(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.forge.base = y.forge.commit([]string{sum("before")})
		a := y.approve("a")
		y.step(a)
		for sha := range y.checks {
			y.checks[sha] = Result{State: CheckFailed, Why: "it failed", Log: "--- FAIL: TestLease (2.01s)\n    store_test.go:88: lease expired after 2.013s\nFAIL example.com/lease 2s\n"}
		}
		y.step(a)
		if b := y.shown().Batches; len(b) != 1 || b[0].Try != 2 || b[0].State != Checking {
			t.Fatalf("after a failure that may come and go: %+v", b)
		}
		y.checkEnds(never0)
		y.step(a)
		if !a.merged {
			t.Errorf("it was not merged: %v", y.rejected)
		}
		b := y.approve("b")
		y.step(b)
		for range mostLost {
			y.checkEnds(func() bool { return true })
			y.step(b)
		}
		if b.merged || y.rejected[b.pr] != ByLost {
			t.Errorf("merged %t, thrown out %v", b.merged, y.rejected)
		}
	})
}

// Whatever dies, moves or is taken back, at whichever step: nothing is merged twice,
// nothing is lost, what fails is never merged, and no branch is left behind.
func TestUnderDisorder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		n := 0
		rapid.Check(t, func(r *rapid.T) {
			n++
			y.begin(fmt.Sprintf("r%d", n))
			flip := func(what string, in int) bool { return rapid.IntRange(0, in).Draw(r, what) == 1 }
			var all []*order
			y.forge.kill = func(step string) bool { return flip("killed at "+step, 20) }
			pick := func() *order { return rapid.SampledFrom(all).Draw(r, "order") }
			taken := map[string]bool{}
			for range rapid.IntRange(10, 60).Draw(r, "steps") {
				node := rapid.IntRange(0, 1).Draw(r, "node")
				switch rapid.IntRange(0, 11).Draw(r, "step") {
				case 0, 1:
					o := y.approve(fmt.Sprintf("h%d", len(all)))
					y.forge.bad[o.head] = flip("bad", 4)
					if len(all) > 0 && flip("rivals", 5) {
						y.forge.rivals = append(y.forge.rivals, [2]string{pick().head, o.head})
					} else if len(all) > 0 && flip("needs", 4) {
						y.forge.needs = append(y.forge.needs, [2]string{o.head, pick().head})
					} else if len(all) > 0 && flip("clash", 5) {
						y.forge.clashes = append(y.forge.clashes, [2]string{pick().head, o.head})
					}
					// A head that fails on its own was never approved on this base.
					if !y.forge.works([]string{o.head}) {
						y.forge.base = y.forge.commit(append(slices.Clone(y.forge.heads[y.forge.base]), sum(o.pr)))
					}
					all = append(all, o)
				case 2, 3, 4:
					if len(all) > 0 {
						y.apply(node, pick(), flip("dies", 4))
					}
				case 5, 6:
					y.nodes[node].Pass(y.ctx())
				case 7:
					y.checkEnds(func() bool { return flip("lost", 8) })
				case 8:
					y.clock.Add(rapid.Int64Range(1, 200).Draw(r, "seconds") * 1_000_000)
				case 10, 11: // a batch comes as far as its merges
					for range 2 {
						y.nodes[node].Pass(y.ctx())
						y.checkEnds(never0)
					}
				case 9:
					if len(all) > 0 && flip("taken back", 2) {
						if o := pick(); !o.merged && !slices.Contains(y.forge.heads[y.forge.base], o.head) {
							o.open, taken[o.pr] = false, true
						}
					} else {
						was, push := y.forge.heads[y.forge.base], sum(fmt.Sprint("push", len(y.forge.heads)))
						if len(all) > 0 {
							// What was checked before does not work with what is pushed.
							if o := pick(); !slices.Contains(was, o.head) {
								y.forge.rivals = append(y.forge.rivals, [2]string{push, o.head})
							}
						}
						y.forge.base = y.forge.commit(append(slices.Clone(was), push))
					}
				}
			}
			y.rest()
			in := y.forge.heads[y.forge.base]
			for _, o := range all {
				times := len(slices.DeleteFunc(slices.Clone(in), func(h string) bool { return h != o.head }))
				switch {
				case times > 1:
					r.Errorf("%s was merged %d times", o.pr, times)
				case o.merged != (times == 1):
					r.Errorf("%s: merged %t, and %d times in the base", o.pr, o.merged, times)
				case taken[o.pr] && o.merged, y.forge.bad[o.head] && o.merged:
					r.Errorf("%s was merged: taken back %t, bad %t", o.pr, taken[o.pr], y.forge.bad[o.head])
				case !o.merged && !taken[o.pr] && y.rejected[o.pr] == "":
					r.Errorf("%s is lost: %+v", o.pr, y.shown())
				case y.rejected[o.pr] == ByCheck && y.forge.works([]string{o.head}) &&
					!both(y.forge.rivals, append(slices.Clone(in), o.head)):
					r.Errorf("%s was thrown out although nothing is wrong with it", o.pr)
				}
			}
			if !y.forge.works(in) {
				r.Error("heads were merged that were not checked together")
			}
			if q := y.shown(); len(q.Batches)+len(q.Waiting) > 0 || len(y.forge.refs) > 0 {
				r.Errorf("left behind: %+v, %v", q, y.forge.refs)
			}
		})
	})
}
