package flow

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/schedule"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// The ask of an occurrence is filed once, for the person of the schedule, and is busy until
// triage and what came of it are over.
func TestScheduledAsks(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		asks := ScheduleAsks{Hub: event.NewHub()}
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ada"}, seed.Repo{ID: "web", Account: "acme"}); err != nil {
				return err
			}
			f := schedule.Filing{
				RepoID: "web", Title: "t", Body: "b", Key: "s@1", By: "schedule:s", UserID: "ada", Scopes: policy.Scopes(policy.WriteTasks),
			}
			first, err := asks.File(tx, f)
			if err != nil {
				return err
			}
			again, err := asks.File(tx, f)
			if err != nil || again != first {
				t.Errorf("%s and %s (%v)", first, again, err)
			}
			a, _, err := ask.Get(tx, first)
			if err != nil || a.Source != ask.FromSchedule || a.FiledBy != "schedule:s" || a.RequestedBy == nil || *a.RequestedBy != "ada" {
				t.Errorf("%+v (%v)", a, err)
			}
			if busy, err := asks.Busy(tx, first); err != nil || !busy {
				t.Errorf("a pending ask is not busy (%v)", err)
			}
			if busy, err := asks.Busy(tx, "none"); err != nil || busy {
				t.Errorf("no ask is busy (%v)", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Busy ends with the task that came of an ask.
func TestBusyUntilTasksEnd(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		asks := ScheduleAsks{Hub: event.NewHub()}
		for status, want := range map[string]bool{
			"pending": true, "held": true, "running": true, "awaiting_review": true, "merged": false, "failed": false, "cancelled": false,
		} {
			err := d.Write(db.WithAccount(t.Context(), "a-"+status), func(tx *db.Tx) error {
				if err := seed.Add(tx, seed.Account{ID: tx.Account}, seed.Repo{ID: "r-" + status, Account: tx.Account},
					seed.Task{ID: "t-" + status, Account: tx.Account, Repo: "r-" + status, Status: status},
					seed.Ask{ID: "q-" + status, Account: tx.Account, Task: "t-" + status}); err != nil {
					return err
				}
				busy, err := asks.Busy(tx, "q-"+status)
				if busy != want {
					t.Errorf("an ask whose task is %s: busy %v", status, busy)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
