package flow

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/escalation"
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
		asks := ScheduleAsks{}
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
			for _, resolved := range []bool{false, true} {
				asked := seed.Ask{ID: "asked", Account: "acme", State: "escalated"}
				if !resolved {
					err = seed.Add(tx, asked, seed.Escalation{ID: "e", Account: "acme", Title: "t", Ask: asked.ID})
				} else {
					err = escalation.ResolveOfAsk(tx, asked.ID, "unclear", "yes")
				}
				if err != nil {
					return err
				}
				if busy, err := asks.Busy(tx, asked.ID); err != nil || busy == resolved {
					t.Errorf("an escalated ask, resolved %v: busy %v (%v)", resolved, busy, err)
				}
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

// Owners and admins hear of a schedule that stops by itself, and of no other.
func TestStoppedScheduleIsTold(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ada"}, seed.User{ID: "bob"},
			seed.Member{Account: "acme", User: "ada", Role: "admin"},
			seed.Member{Account: "acme", User: "bob", Role: "member"}); err != nil {
			return err
		}
		for why, want := range map[string]bool{schedule.PersonLeft: true, "person": false} {
			e := event.Recorded{Kind: "schedule.paused", Object: "s", Data: []byte(`{"title":"Weekly","why":"` + why + `"}`)}
			n, ok, err := Notify{}.scheduleStopped(tx, e)
			if err != nil || ok != want {
				t.Errorf("%s: %+v (%v)", why, n, err)
			}
			if ok && (len(n.To) != 1 || n.To[0] != "ada" || n.Subject != "s" || n.Title != "The schedule has stopped: Weekly") {
				t.Errorf("%+v", n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Busy ends with the task that came of an ask.
func TestBusyUntilTasksEnd(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		asks := ScheduleAsks{}
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
