package review

import (
	"errors"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
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
		out, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID, Reason: "no"})
		if err != nil || out.State != Dismissed || y.told.Findings != 0 || out.Repo != "acme/web" {
			t.Errorf("%+v, %v, %+v", out, err, y.told)
		}
		if again, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID}); err != nil || again.RuleID == nil || *again.RuleID != *out.RuleID {
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
	})
}
