package measure

import (
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

// A recorded try has its task, what it cost, and how often a person was asked about the merge;
// what repairs a pull request is not counted as asked once more. Pages go on behind a try.
func TestTries(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			merged, decided := int64(9), int64(8)
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "other"},
				seed.Repo{ID: "web", Account: "acme", Owner: "acme", Name: "web"},
				seed.Repo{ID: "far", Account: "other", Owner: "other", Name: "far"},
				seed.Task{ID: "t1", Account: "acme", Repo: "web", Pull: new("p"), Template: "careful", Created: 0},
				seed.Task{ID: "t2", Account: "acme", Repo: "web", Kind: "babysit", Pull: new("p")},
				seed.Task{ID: "t3", Account: "other", Repo: "far"},
				seed.Run{ID: "r1", Account: "acme", Task: "t1", Repo: "web", Box: "box"},
				seed.Run{ID: "r2", Account: "acme", Task: "t2", Repo: "web", Box: "box"},
				seed.Run{ID: "r3", Account: "other", Task: "t3", Repo: "far", Box: "box"},
				seed.Session{ID: "s1", Account: "acme", Repo: "web", Run: new("r1"), Task: new("t1"), Micros: new(int64(70)), Unpriced: 2},
				seed.Session{ID: "s2", Account: "acme", Repo: "web", Run: new("r2"), Task: new("t2")},
				seed.Session{ID: "s3", Account: "other", Repo: "far", Run: new("r3"), Task: new("t3")},
				seed.Pull{ID: "p", Account: "acme", Repo: "web", State: "merged", Task: new("t1"), Merged: &merged},
				seed.Action{ID: "a1", Account: "acme", Pull: "p", Kind: "merge", State: "stale", SHA: "x"},
				seed.Action{ID: "a2", Account: "acme", Pull: "p", Kind: "merge", State: "applied", SHA: "y", By: new("user:ada"),
					Decided: &decided},
				seed.Action{ID: "a3", Account: "acme", Pull: "p", Kind: "merge", State: "applied", SHA: "z", By: new("policy"),
					Decided: &decided},
			); err != nil {
				return err
			}
			span := Since(time.UnixMicro(0))
			all, err := Tries(tx, span, time.UnixMicro(-1), "", 9)
			if err != nil {
				return err
			}
			if len(all) != 2 || all[0].RunID != "r1" || all[0].Template != "careful" || *all[0].CostMicros != 70 || all[0].Unpriced != 2 ||
				!all[0].Merged || all[0].Asked != 2 || all[0].Protected != 0 || all[1].Asked != 0 || all[1].Merged {
				t.Errorf("%+v", all)
			}
			rest, err := Tries(tx, span, all[0].ClaimedAt, all[0].SessionID, 9)
			if len(rest) != 1 || rest[0].RunID != "r2" {
				t.Errorf("%+v", rest)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A task is ready when the last thing is over that is known to have kept it from a box.
func TestReadyAt(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, c := range []struct {
		try  Try
		want int64
	}{
		{Try{CreatedAt: at(1), ClaimedAt: at(9)}, 1},
		{Try{CreatedAt: at(1), ClaimedAt: at(9), DependedUntil: new(at(4)), TriedUntil: new(at(3))}, 4},
		{Try{CreatedAt: at(1), ClaimedAt: at(9), TriedUntil: new(at(5))}, 5},
		{Try{CreatedAt: at(1), ClaimedAt: at(9), DependedUntil: new(at(12))}, 1}, // finished anew since
	} {
		if got := c.try.ReadyAt(); !got.Equal(at(c.want)) {
			t.Errorf("%+v: %v", c.try, got)
		}
	}
}
