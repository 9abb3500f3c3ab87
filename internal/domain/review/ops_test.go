package review

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
)

// When a review cannot be run again.
func TestRerunIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		refused := func(reason string) {
			t.Helper()
			_, err := y.rerun(y.ctx(), rerunIn{ID: y.pr.ID})
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Slug != reason {
				t.Errorf("%v, want %s", err, reason)
			}
		}
		y.commit("a.txt", "a\n")
		refused("no_review")
		y.head()
		y.pass(0)
		if out, err := y.rerun(y.ctx(), rerunIn{ID: y.pr.ID}); err != nil || out.Rerun || *out.TaskID != "task-1" {
			t.Errorf("%+v, %v", out, err)
		}
		y.found()
		y.pass(0)
		y.wantRun(Completed, VerdictSuccess, 0)
		y.pr.PlanDone = true
		refused("plan_done")
		y.pr.PlanDone, y.pr.Open = false, false
		refused("pr_not_open")
		y.write(func(tx *db.Tx) error { _, err := seed.SetEnabled.Exec(tx, y.repo, false); return err })
		y.pr.Open = true
		refused("repo_disabled")
		y.write(func(tx *db.Tx) error { _, err := seed.SetEnabled.Exec(tx, y.repo, true); return err })
		y.pr.Open = true
		head := y.pr.HeadSHA
		y.pr.HeadSHA = y.pr.MergeBase
		refused("head_moved")
		y.pr.HeadSHA = head
		out, err := y.rerun(y.ctx(), rerunIn{ID: y.pr.ID})
		if err != nil || !out.Rerun || *out.TaskID != "task-2" || out.Review.SinceSHA != nil || len(y.runs()) != 2 {
			t.Errorf("%+v, %v", out, err)
		}
		if _, err := y.rerun(y.ctx(), rerunIn{ID: "nonsense"}); !errors.Is(err, fault.Missing("pull request")) {
			t.Error(err)
		}
	})
}

// What a person dismisses is not named again in the repository, until the rule goes. The
// findings of another account are not there.
func TestDismissedForTheRepository(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		review := func() {
			t.Helper()
			y.head()
			y.pass(0)
			y.found(defect("a.txt", 5, "high", "It is wrong."))
			y.pass(0)
		}
		y.commit("a.txt", numbered(20))
		review()
		y.verified(1, 1)
		f := y.all()[0]
		if _, err := y.dismiss(db.WithAccount(t.Context(), "rival"), dismissIn{ID: f.ID}); !errors.Is(err, fault.Missing("finding")) {
			t.Error(err)
		}
		out, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID, Reason: "no", Rule: true})
		if err != nil || out.State != Dismissed || y.told.Findings != 0 || out.Repo != "acme/web" {
			t.Errorf("%+v, %v, %+v", out, err, y.told)
		}
		again, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID, Rule: true})
		if err != nil || again.RuleID == nil || *again.RuleID != *out.RuleID {
			t.Errorf("%+v, %v", again, err)
		}

		y.pr.ID = id.New()
		review()
		y.wantRun(Completed, VerdictSuccess, 0)

		var all []ruleRow
		y.write(func(tx *db.Tx) (err error) {
			all, err = listRules(tx, y.repo, op.PageIn{PerPage: 10})
			return err
		})
		if len(all) != 1 || all[0].Claim != "It is wrong." || all[0].Reason != "no" || out.RuleID == nil || *out.RuleID != all[0].ID {
			t.Fatalf("%+v", all)
		}
		if _, err := y.ruleDelete(y.ctx(), ruleIn{Owner: "acme", Repo: "web", ID: all[0].ID}); err != nil {
			t.Fatal(err)
		}
		if again, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID}); err != nil || again.RuleID != nil {
			t.Errorf("%+v, %v", again, err)
		}
		y.pr.ID = id.New()
		review()
		y.verified(1, 1)
		y.wantRun(Completed, VerdictFailure, 1)

		// What is fixed is nobody's to dismiss.
		open := y.all()[slices.IndexFunc(y.all(), func(f Finding) bool { return f.State != Dismissed })]
		y.write(func(tx *db.Tx) error {
			now, err := findingByID.One(tx, tx.Account, open.ID)
			if err != nil {
				return err
			}
			now.State = Fixed
			_, err = updateFinding.Exec(tx, now)
			return err
		})
		if _, err := y.dismiss(y.ctx(), dismissIn{ID: open.ID}); fault.From(err).Slug != "finding_closed" {
			t.Errorf("fixed: %v", err)
		}
	})
}

// What is dismissed without a word of the repository is dropped in its pull request alone:
// another one is told of it, no rule is made, and it decides nothing about how right reviews
// are. Saying later that it is none at all makes the rule.
func TestDismissedInItsPullRequestAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("a.txt", numbered(20))
		y.reviewed(defect("a.txt", 5, "high", "It is wrong."))
		f := y.only()
		out, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID, Reason: "Not here."})
		if err != nil || out.State != Dismissed || out.RuleID != nil || y.told.Findings != 0 {
			t.Errorf("%+v, %v, %+v", out, err, y.told)
		}
		precision := func() Precision {
			t.Helper()
			all, err := y.list(y.ctx(), listIn{Owner: "acme", Repo: "web"})
			if err != nil {
				t.Fatal(err)
			}
			return all.Precision
		}
		if got := precision(); got != (Precision{Posted: 1, Dismissed: 1}) {
			t.Errorf("%+v", got)
		}

		// It is not posted in the pull request again.
		y.commit("b.txt", "b\n")
		y.reviewed(defect("a.txt", 5, "high", "It is wrong."))
		y.wantRun(Completed, VerdictSuccess, 0)

		// In another one it is.
		y.pr.ID = id.New()
		y.reviewed(defect("a.txt", 5, "high", "It is wrong."))
		y.wantRun(Completed, VerdictFailure, 1)

		for range 2 {
			if again, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID}); err != nil || again.RuleID != nil {
				t.Errorf("%+v, %v", again, err)
			}
		}
		said := y.said
		ruled, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID, Rule: true})
		if err != nil || ruled.RuleID == nil || y.said != said {
			t.Errorf("%+v, %v, said %d times", ruled, err, y.said-said)
		}
		if got := precision(); got != (Precision{Posted: 2, Dismissed: 1, D: 1}) {
			t.Errorf("%+v", got)
		}
		y.pr.ID = id.New()
		y.reviewed(defect("a.txt", 5, "high", "It is wrong."))
		y.wantRun(Completed, VerdictSuccess, 0)
	})
}

// Which model looked: one that is recorded, one that is not, and a program in its place, of
// which nobody knows a model.
func TestBrains(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("a.txt", "a\n")
		y.reviewed()
		p, m := "anthropic", "m1"
		for name, c := range map[string]struct {
			seen Seen
			want Brain
		}{
			"recorded":     {Seen{Provider: p, Model: m}, Brain{Kind: "model", Provider: &p, Model: &m}},
			"not recorded": {Seen{}, Brain{Kind: "model"}},
			"a program":    {Seen{Program: true}, Brain{Kind: "unknown"}},
		} {
			y.brains = map[string]Seen{"task-1": c.seen}
			all, err := y.list(y.ctx(), listIn{Owner: "acme", Repo: "web"})
			if err != nil || len(all.Data) != 1 || !reflect.DeepEqual(all.Data[0].Brain, c.want) {
				t.Errorf("%s: %+v, %v", name, all.Data, err)
			}
		}
	})
}

// A head that nobody has looked at is never told as one that passed: not to its pull request,
// not in a list, not at the code host.
func TestUnreviewedIsNoSuccess(t *testing.T) {
	t.Parallel()
	over := func(y *yard, m TaskMoved) {
		m.TaskID, m.Over = "task-1", true
		y.pass(0)
		y.write(func(tx *db.Tx) error { return y.Moved(tx, m) })
	}
	for name, c := range map[string]struct {
		before, after func(*yard)
		note, outcome string
	}{
		"off":        {func(y *yard) { y.policy = "review: {mode: off}\n" }, nil, "", ""},
		"on request": {func(y *yard) { y.policy = "review: {mode: on_request}\n" }, nil, "", ""},
		"unwatched":  {func(y *yard) { y.pr.Watched = false }, nil, "", ""},
		"a draft":    {func(y *yard) { y.pr.Open, y.pr.Why = false, "the pull request is a draft" }, nil, "", ""},
		"no key":     {func(y *yard) { y.gap = GapNoCredential }, nil, "", Blind},
		"no model":   {func(y *yard) { y.gap = GapUnresolved }, nil, "", Blind},
		"failed":     {nil, func(y *yard) { over(y, TaskMoved{Why: "gave up"}) }, "gave up", Failed},
		"cancelled":  {nil, func(y *yard) { over(y, TaskMoved{Cancelled: true}) }, "its task was cancelled", Cancelled},
		"the verifier failed": {nil, func(y *yard) {
			y.pass(0)
			y.found(defect("a.txt", 1, "low", "It is untidy."), defect("a.txt", 1, "high", "It is wrong."))
			y.pass(0)
			y.write(func(tx *db.Tx) error { return y.Moved(tx, TaskMoved{TaskID: "task-2", Over: true, Why: "gave up"}) })
		}, "gave up", Failed},
		"a draft meanwhile": {nil, func(y *yard) {
			y.pr.Open, y.pr.Why = false, "the pull request is a draft"
			y.pass(0)
		}, "the pull request is a draft", Cancelled},
		"a draft while it was verified": {nil, func(y *yard) {
			y.pass(0)
			y.found(defect("a.txt", 1, "high", "It is wrong."))
			y.pass(0)
			y.pr.Open, y.pr.Why = false, "the pull request is a draft"
			y.verified(1)
		}, "the pull request is a draft", Cancelled},
		"closed meanwhile": {nil, func(y *yard) {
			y.pr.Open = false
			y.pass(0)
		}, noteOver, Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				if c.before != nil {
					c.before(y)
				}
				y.commit("a.txt", "a\n")
				y.head()
				if c.after != nil {
					c.after(y)
				}
				if y.told != (Result{Outcome: c.outcome}) {
					t.Errorf("the pull request was told %+v", y.told)
				}
				all, err := y.list(y.ctx(), listIn{Owner: "acme", Repo: "web"})
				if err != nil {
					t.Fatal(err)
				}
				of, err := y.status(y.ctx(), statusIn{ID: y.pr.ID, PageIn: op.PageIn{PerPage: 10}})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range append(all.Data, of.Data...) {
					if r.Verdict == nil || *r.Verdict != VerdictNeutral || r.FindingsKept != nil || r.EndedAt == nil {
						t.Errorf("listed as %+v", r)
					}
					if note := r.Note; c.note == "" && note != nil || c.note != "" && (note == nil || *note != c.note) {
						t.Errorf("note %v, want %q", note, c.note)
					}
				}
				if n := len(y.checks); n > 0 && y.checks[n-1] != VerdictNeutral {
					t.Errorf("the check went %v", y.checks)
				}
				// Nor is the head to which a rebase takes it.
				if y.pr.Open && y.pr.Watched && y.policy == "" {
					y.git("checkout", "--quiet", "main")
					y.commit("other.txt", "o\n")
					y.push("main")
					y.git("checkout", "--quiet", "topic")
					y.git("rebase", "--quiet", "main")
					y.head()
					if y.told.Outcome == Looked || y.last().Note == noteRebase {
						t.Errorf("after a rebase: %+v, %+v", y.told, y.last())
					}
				}
			})
		})
	}
}

// What people say of a finding reaches the code host: the check does not stay red for one that
// holds the merge no longer.
func TestVerdictFollowsPeople(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("a.txt", numbered(20))
		y.reviewed(defect("a.txt", 5, "high", "It is wrong."), defect("a.txt", 15, "high", "Another thing fails."))
		all := y.all()
		y.wantRun(Completed, VerdictFailure, 2)
		if _, err := y.dismiss(y.ctx(), dismissIn{ID: all[0].ID}); err != nil {
			t.Fatal(err)
		}
		y.wantRun(Completed, VerdictFailure, 2)
		y.write(func(tx *db.Tx) error { return y.Service.Answer(tx, all[1].ID, false) })
		y.wantRun(Completed, VerdictSuccess, 2)
		y.write(func(tx *db.Tx) error { return y.Service.Answer(tx, all[1].ID, true) })
		y.wantRun(Completed, VerdictFailure, 2)
		if want := []string{Queued, VerdictFailure, VerdictSuccess, VerdictFailure}; !slices.Equal(y.checks, want) {
			t.Errorf("%v, want %v", y.checks, want)
		}

		// Of an earlier head it says nothing.
		y.commit("b.txt", "b\n")
		y.head()
		if _, err := y.dismiss(y.ctx(), dismissIn{ID: all[1].ID}); err != nil {
			t.Fatal(err)
		}
		y.wantRun(Queued, "", -1)
		if got := *y.runs()[0].Verdict; got != VerdictFailure {
			t.Errorf("the earlier one is %s", got)
		}
	})
}
