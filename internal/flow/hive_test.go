package flow

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/hive"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
)

// TestLanesReport holds that each task of a plan reports at its end, once, with what it can know;
// that one which was cancelled, goes on or belongs to no lane says nothing; and that a scout of no
// fan-out is none of the lane's.
func TestLanesReport(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		h := hive.New(hive.Needs{DB: w.db, Version: "1.0"})
		report := ReportLanes(h, run.New(run.Needs{
			DB: w.db, Hub: event.NewHub(), Tasks: w.tasks, Queue: w.Queue, Bus: noBus{}, Logger: discard, Setup: RunSetup{},
			Boxes: RunBoxes{}, Vault: noVault{}, Branches: Branches{}, Settler: Settler{}, Asks: RunAsks{}, Artifacts: RunArtifacts{},
		}))
		w.write(func(tx *db.Tx) error {
			for _, row := range []task.Row{
				{ID: "merged", PlanID: new("plan"), PRID: new("pr"), Status: task.Merged, Attempt: 1},
				{ID: "failed", PlanID: new("plan"), Status: task.Failed, Attempt: 3},
				{ID: "alone", Kind: task.KindScout, Status: task.Completed, Attempt: 1},
				{ID: "cancelled", PlanID: new("plan"), Status: task.Cancelled}, {ID: "runs", PlanID: new("plan"), Status: task.Running},
				{ID: "other", Kind: task.KindWork, Status: task.Failed},
			} {
				row.AccountID = "acme"
				for range 2 {
					if err := report(tx, task.Move{Task: &row, From: task.Running}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		var said []string
		w.write(func(tx *db.Tx) (err error) { said, err = seed.LanesSaid.All(tx); return err })
		want := `failed plans {"delivered":{"n":0,"d":1},"first_try":{"n":0,"d":1},"merged":{"n":0,"d":0}}
merged plans {"delivered":{"n":1,"d":1},"first_try":{"n":1,"d":1},"merged":{"n":1,"d":1}}`
		if got := strings.Join(said, "\n"); got != want {
			t.Errorf("%s\nand should be\n%s", got, want)
		}
	})
}
