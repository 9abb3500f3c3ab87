package queue

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
)

// Whether a box would claim what somebody files is answered as a task that they
// filed would answer it.
func TestFleetAgreesWithHolds(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.write("", func(tx *db.Tx) error {
			for _, user := range []string{"ann", "bob"} {
				if err := seed.Add(tx, seed.User{ID: user}); err != nil {
					return err
				}
				if err := seed.Add(tx, seed.Member{Account: "acme", User: user}); err != nil {
					return err
				}
			}
			return nil
		})
		acme, rival, ann, bob := "acme", "rival", "ann", "bob"
		filed := f.create(object{"kind": "scout"})
		by := f.get(filed)["created_by"].(string)
		seen := map[string]bool{}
		for _, state := range []string{"enrolled", "draining"} {
			for target, owner := range map[string]*string{"org acme": &acme, "org rival": &rival, "user ann": &ann, "user bob": &bob,
				"shared": nil} {
				for _, unfit := range []any{nil, "it cannot"} {
					for _, levels := range []string{`[]`, `["none"]`, `["bubblewrap","none"]`} {
						f.write("", func(tx *db.Tx) error {
							kind, _, _ := strings.Cut(target, " ")
							if _, err := seed.SetTarget.Exec(tx, "box", kind, owner); err != nil {
								return err
							}
							if _, err := seed.SetState.Exec(tx, "box", state); err != nil {
								return err
							}
							if _, err := seed.SetUnfit.Exec(tx, "box", unfit); err != nil {
								return err
							}
							_, err := seed.SetLevels.Exec(tx, "box", levels, `{}`)
							return err
						})
						want, got := strings.Join(reasons(f.get(filed)), " "), Fleet{}
						f.write("acme", func(tx *db.Tx) (err error) {
							r, _, err := f.RepoByName(tx, "acme", "web")
							if err == nil {
								got, err = f.Fleet(tx, "acme", by, &r)
							}
							return err
						})
						seen[got.Hold] = true
						if got.Hold != want || (got.Hold == "") != (got.MayClaim == 1) {
							f.t.Errorf("%s, %s, %v, %s: %+v, but the task says %q", state, target, unfit, levels, got, want)
						}
					}
				}
			}
		}
		// A box would claim a scout whose agent takes no messages, and plan.start refuses it.
		f.write("acme", func(tx *db.Tx) error {
			r, _, err := f.RepoByName(tx, "acme", "web")
			if err != nil {
				return err
			}
			r.Template = "mute"
			got, err := f.Fleet(tx, "acme", by, &r)
			if got.Hold != NoLiveAgent || got.MayClaim != 0 {
				f.t.Errorf("an agent that takes no messages: %+v", got)
			}
			return err
		})
		for _, hold := range []string{"", task.HoldNoBox, task.HoldDraining, task.HoldUnfit, task.HoldIsolation} {
			if !seen[hold] {
				f.t.Errorf("no case for %q", hold)
			}
		}
	})
}

// What keeps boxes from a task, whatever boxes there are, is told before it is filed: a plan
// that does not cover the repository, a permission that its owner has yet to grant, and a
// key that the template cannot use.
func TestFleetNamesTheHoldsOfRepositoryAndKey(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		needs := []Need{{Agent: "claude"}, {Agent: "claude", NoKey: "of the provider openai"}, {Agent: "claude", WrongProvider: "x"},
			{Agent: "claude", NoModel: true}}
		repos := []task.Repo{{Enabled: true}, {Enabled: true, Uncovered: true}, {Enabled: true, Lacks: "checks"}, {}, {Gone: "removed"}}
		seen := map[string]bool{}
		for _, need := range needs {
			for _, r := range repos {
				r.ID, r.Owner, r.Name = "acme-web", "acme", "web"
				f.others.needed = &need
				f.write("acme", func(tx *db.Tx) error {
					got, err := f.Fleet(tx, "acme", "user:ann", &r)
					if err != nil {
						return err
					}
					pending := task.Row{AccountID: "acme", RepoID: r.ID, Kind: task.KindScout, Template: "default", QueuedAt: tx.Now}
					own, err := f.facts(tx, "acme", map[string]task.Repo{r.ID: r}, []task.Row{pending})
					if err != nil {
						return err
					}
					want := reasonsOf(own.own(&pending))
					if told := strings.TrimSpace(got.Repo + " " + got.Key); told != want {
						f.t.Errorf("%+v, %+v: %q, but the task says %q", r, need, told, want)
					}
					seen[got.Repo], seen[got.Key] = true, true
					return nil
				})
			}
		}
		for _, hold := range []string{"", task.HoldRepo, task.HoldPlan, task.HoldKey, task.HoldModel} {
			if !seen[hold] {
				f.t.Errorf("no case for %q", hold)
			}
		}
	})
}

func reasonsOf(holds []task.Hold) string {
	out := make([]string, len(holds))
	for i, h := range holds {
		out[i] = h.Reason
	}
	return strings.Join(out, " ")
}
