package box

import (
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

var (
	hasten   = db.S(`UPDATE boxes SET retire_at = 1 WHERE id = $1`)
	retireBy = db.Q[*string](`SELECT retire_by FROM boxes WHERE id = $1`)
)

// holding makes a box online with a run, and returns the run's id.
func (f *fixture) holding(boxID string) (runID string) {
	runID = id.New()
	f.write(func(tx *db.Tx) error {
		if _, err := beat.Exec(tx, beatArgs{ID: boxID, LastBeatAt: tx.Now, Version: "1.0.0"}); err != nil {
			return err
		}
		return seed.Add(tx, seed.Repo{ID: runID, Account: "acme"}, seed.Task{ID: runID, Account: "acme", Repo: runID, Status: "running"},
			seed.Run{ID: runID, Account: "acme", Task: runID, Repo: runID, Box: boxID})
	})
	return runID
}

// TestDrainOfABoxAtWork holds that the answer of a drain tells the tasks that
// it put back itself from those that the box is to hand back.
func TestDrainOfABoxAtWork(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		boxID := f.enrolled(publicKey(t)).ID
		f.holding(boxID)
		path := "/v1/runners/" + boxID + "/drain"
		for _, when := range []string{"first", "again"} {
			var got Drain
			f.want(200, "", "POST", path, nil).into(t, &got)
			if want := (Drain{ID: boxID, State: Draining, Requeued: 0, Handing: 1}); got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		for _, when := range []string{"first", "again"} { // of one that takes work nothing is to be handed back
			var got Drain
			f.want(200, "", "POST", path, map[string]bool{"resume": true}).into(t, &got)
			if want := (Drain{ID: boxID, State: Enrolled}); got != want {
				t.Errorf("resumed %s: %+v, want %+v", when, got, want)
			}
		}
		if len(f.runs.evacuated) > 0 {
			t.Errorf("taken from under the box: %v", f.runs.evacuated)
		}
	})
}

// TestDecommissionWaits holds that a box that is decommissioned is revoked only
// after it has handed back its work, or after its grace.
func TestDecommissionWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		due := func() {
			t.Helper()
			if err := f.retireAll(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		asked := func(boxID string, body any) (out Removal) {
			t.Helper()
			f.want(200, "", "POST", "/v1/runners/"+boxID+"/decommission", body).into(t, &out)
			return out
		}
		done := func(boxID string) {
			t.Helper()
			if b := f.box(boxID); b.State != Revoked || b.RevokesAt != nil {
				t.Errorf("box %+v", b)
			}
			if n := read(f, countAudit, boxID, "runner.decommissioned"); n != 1 {
				t.Errorf("%d audit rows say so", n)
			}
			if by := read(f, retireBy, boxID); by == nil || *by != "user:ann" {
				t.Errorf("asked for by %v", by)
			}
		}

		given := f.enrolled(publicKey(t)).ID
		run := f.holding(given)
		got := asked(given, nil)
		if got.State != Draining || got.Status != statusDraining || got.Handing != 1 || got.RevokedAt != nil || got.RevokesAt == nil ||
			time.Until(*got.RevokesAt) > retireGrace || time.Until(*got.RevokesAt) < retireGrace/2 {
			t.Errorf("asked for: %+v", got)
		}
		if b := f.box(given); b.State != Draining || b.RevokesAt == nil {
			t.Errorf("meanwhile: %+v", b)
		}
		if sooner := asked(given, map[string]int{"grace_s": 60}); !sooner.RevokesAt.Before(*got.RevokesAt) {
			t.Errorf("the grace was not shortened: %+v", sooner)
		}
		if later := asked(given, map[string]int{"grace_s": 3600}); time.Until(*later.RevokesAt) > time.Minute {
			t.Errorf("asking again gives more time: %+v", later)
		}
		due()
		if b := f.box(given); b.State != Draining {
			t.Fatalf("revoked before its work was handed back: %+v", b)
		}
		f.write(func(tx *db.Tx) error {
			_, err := seed.EndRun.Exec(tx, run)
			return err
		})
		if err := f.store(t.Context(), map[string]protocol.Presence{given: {State: Drained}}); err != nil {
			t.Fatal(err)
		}
		due()
		done(given)
		due()

		slow := f.enrolled(publicKey(t)).ID
		f.holding(slow)
		asked(slow, map[string]int{"grace_s": 1})
		f.write(func(tx *db.Tx) error {
			_, err := hasten.Exec(tx, slow)
			return err
		})
		due()
		done(slow)

		kept := f.enrolled(publicKey(t)).ID
		f.holding(kept)
		asked(kept, nil)
		f.want(200, "", "POST", "/v1/runners/"+kept+"/drain", map[string]bool{"resume": true})
		due()
		if b := f.box(kept); b.State != Enrolled || b.RevokesAt != nil {
			t.Errorf("called off: %+v", b)
		}
		if got := asked(kept, map[string]int{"grace_s": 0}); got.State != Revoked || got.Status != retired {
			t.Errorf("without grace: %+v", got)
		}
		f.want(400, "invalid", "POST", "/v1/runners/"+kept+"/decommission", map[string]int{"grace_s": 3601})
		if want := []string{"revoked " + given, "revoked " + slow, "revoked " + kept}; !slices.Equal(f.runs.evacuated, want) {
			t.Errorf("evacuated %v", f.runs.evacuated)
		}
	})
}
