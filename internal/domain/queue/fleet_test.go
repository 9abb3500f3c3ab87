package queue

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
)

// Whom a box serves: its account, every account, or one member's tasks there and
// where the member has agreed and is let in.
func TestWhomABoxServes(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.write("", func(tx *db.Tx) error {
			return seed.Add(tx, seed.User{ID: "ann"}, seed.Member{Account: "acme", User: "ann"}, seed.Member{Account: "rival", User: "ann"})
		})
		target := func(target string, owner *string) {
			f.write("", func(tx *db.Tx) error { _, err := seed.SetTarget.Exec(tx, "box", target, owner); return err })
		}
		next := func() (id string) {
			f.write("", func(tx *db.Tx) error {
				t, err := f.Claimable(tx, "box")
				if t != nil {
					id = t.ID
				}
				return err
			})
			return id
		}
		rivals := f.call("rival", "POST", "/v1/tasks", object{"repo": "rival/web", "title": "Theirs", "problem": "Something."},
			202)["task_id"].(string)
		holds := func() []string { return reasons(f.call("rival", "GET", "/v1/tasks/"+rivals, nil, 200)) }

		if next() != "" || len(holds()) != 1 || holds()[0] != task.HoldNoBox {
			f.t.Errorf("another account's box: claimable %q, holds %v", next(), holds())
		}
		target("shared", nil)
		if next() != rivals || len(holds()) != 0 {
			f.t.Errorf("shared box: claimable %q, holds %v", next(), holds())
		}
		ann, bob := "ann", "bob"
		target("user", &ann)
		if next() != "" || len(holds()) != 1 {
			f.t.Errorf("its author's box, which nobody has agreed to: claimable %q, holds %v", next(), holds())
		}
		f.write("", func(tx *db.Tx) error {
			return seed.Consent{BoxID: "box", AccountID: "rival", UserID: "ann", AgreedAt: new(int64(1))}.Add(tx)
		})
		if next() != "" || len(holds()) != 1 {
			f.t.Errorf("its author's box, which the account does not let in: claimable %q, holds %v", next(), holds())
		}
		f.write("", func(tx *db.Tx) error { _, err := seed.LetIn.Exec(tx, "rival", true); return err })
		if next() != rivals || len(holds()) != 0 {
			f.t.Errorf("its author's box, with both: claimable %q, holds %v", next(), holds())
		}
		f.write("", func(tx *db.Tx) error { _, err := seed.DropMember.Exec(tx, "rival", "ann"); return err })
		if next() != "" || len(holds()) != 1 {
			f.t.Errorf("box of a former member: claimable %q, holds %v", next(), holds())
		}
		target("user", &bob)
		if next() != "" || len(holds()) != 1 {
			f.t.Errorf("somebody else's box: claimable %q, holds %v", next(), holds())
		}
	})
}

func TestDrainingBoxesGetNothing(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		f.write("", func(tx *db.Tx) error { _, err := seed.SetState.Exec(tx, "box", "draining"); return err })
		if got := reasons(f.get(id)); f.claim() != "" || len(got) != 1 || got[0] != task.HoldDraining {
			f.t.Errorf("holds %v", got)
		}
		f.write("", func(tx *db.Tx) error {
			why, err := f.WhyNot(tx, "box")
			if len(why) != 1 || why[0] != task.HoldDraining {
				f.t.Errorf("the box is told %v", why)
			}
			return err
		})
	})
}

// Who names no level gets a box that isolates somehow, or a member's own.
func TestBoxThatOffersNoIsolationGetsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		setIsolation := func(levels string) {
			f.t.Helper()
			f.write("", func(tx *db.Tx) error { _, err := seed.SetLevels.Exec(tx, "box", levels, `{}`); return err })
		}
		setIsolation(`[]`)
		id := f.create(nil)
		held := f.get(id)
		if got := reasons(held); f.claim() != "" || len(got) != 1 || got[0] != task.HoldIsolation {
			f.t.Fatalf("holds %v", got)
		}
		if h := held["holds"].([]any)[0].(object); !strings.HasSuffix(h["clears_when"].(string),
			" isolates agents, or the policy file or the template says isolation: none") {
			f.t.Errorf("hold %v", h)
		}
		setIsolation(`["none"]`)
		if got := reasons(f.get(id)); len(got) != 1 || got[0] != task.HoldIsolation || f.claim() != "" {
			f.t.Errorf("a box that offers none gets what names no level: holds %v", got)
		}
		ann := "ann"
		f.write("", func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.User{ID: ann}); err != nil {
				return err
			}
			if err := seed.Add(tx, seed.Member{Account: "acme", User: ann}); err != nil {
				return err
			}
			_, err := seed.SetTarget.Exec(tx, "box", "user", &ann)
			return err
		})
		if got := reasons(f.get(id)); len(got) != 0 {
			f.t.Errorf("a member's own box: holds %v", got)
		}
		f.write("", func(tx *db.Tx) error {
			acme := "acme"
			_, err := seed.SetTarget.Exec(tx, "box", "org", &acme)
			return err
		})
		setIsolation(`["landlock","none"]`)
		if got := f.claim(); got == "" {
			f.t.Errorf("a box that isolates, and has not said how well: holds %v", reasons(f.get(id)))
		}
	})
}

// TestUnfitForOneRepository holds that a box which cannot work on a repository gets no task of
// it, and all others, and that the tasks of it say so.
func TestUnfitForOneRepository(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		unfitFor := func(repo string) {
			f.t.Helper()
			f.write("", func(tx *db.Tx) error {
				_, err := seed.SetUnfitFor.Exec(tx, "box", db.JSON[map[string]string]{V: map[string]string{repo: "Its cache is damaged."}})
				return err
			})
		}
		unfitFor("acme/web")
		held := f.get(id)
		if got := reasons(held); f.claim() != "" || len(got) != 1 || got[0] != task.HoldUnfit {
			f.t.Fatalf("holds %v", got)
		}
		if h := held["holds"].([]any)[0].(object); h["clears_when"] != "the fault of the box box is repaired: Its cache is damaged." {
			f.t.Errorf("hold %v", h)
		}
		f.write("", func(tx *db.Tx) error {
			why, err := f.WhyNot(tx, "box")
			if len(why) != 1 || why[0] != task.HoldUnfit {
				f.t.Errorf("the box is told %v", why)
			}
			return err
		})
		unfitFor("acme/other")
		if got := f.claim(); got != id {
			f.t.Errorf("it claims %q: %v", got, reasons(f.get(id)))
		}
	})
}

func TestUnfitBoxesGetNothing(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		unfit := func(box string, why any) {
			f.t.Helper()
			f.write("", func(tx *db.Tx) error { _, err := seed.SetUnfit.Exec(tx, box, why); return err })
		}
		id := f.create(nil)
		unfit("box", "The sandbox does not start.")
		held := f.get(id)
		if got := reasons(held); f.claim() != "" || len(got) != 1 || got[0] != task.HoldUnfit {
			f.t.Fatalf("holds %v", got)
		}
		const when = "the fault of the box box is repaired: The sandbox does not start."
		if h := held["holds"].([]any)[0].(object); h["clears_when"] != when || h["clear"] != nil || h["blocking"] != true {
			f.t.Errorf("hold %v", h)
		}
		f.write("", func(tx *db.Tx) error {
			why, err := f.WhyNot(tx, "box")
			if len(why) != 1 || why[0] != task.HoldUnfit {
				f.t.Errorf("the box is told %v", why)
			}
			look, err2 := f.Look(tx, "box")
			if look.Work || look.Asks() {
				f.t.Errorf("the box sees work: %+v", look)
			}
			return errors.Join(err, err2)
		})

		// A person's box that is unfit, too, concerns that person's tasks only.
		ann := "ann"
		f.write("", func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.User{ID: ann}); err != nil {
				return err
			}
			if err := seed.Add(tx, seed.Member{Account: "acme", User: ann}); err != nil {
				return err
			}
			if err := seed.Add(tx, seed.Box{ID: "mine", Account: "acme", Slots: 2}); err != nil {
				return err
			}
			_, err := seed.SetTarget.Exec(tx, "mine", "user", &ann)
			return err
		})
		unfit("mine", "The disk is full.")
		f.write("acme", func(tx *db.Tx) error {
			_, err := f.Create(tx, task.Repo{ID: "acme-web"},
				task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "t", Problem: "p", Template: "default"})
			return err
		})
		stalled := map[string]float64{}
		status := f.call("acme", "GET", "/v1/queue/status", nil, 200)
		for _, s := range status["data"].([]any) {
			if s := s.(object); s["reason"] == task.HoldUnfit {
				stalled[s["clears_when"].(string)] = s["count"].(float64)
			}
		}
		both := "the fault of one of 2 boxes is repaired; the fault of the box box: The sandbox does not start."
		if status["claimable"] != 0.0 || len(stalled) != 2 || stalled[when] != 1 || stalled[both] != 1 {
			f.t.Errorf("status %v", status)
		}

		unfit("mine", nil)
		if f.box = "mine"; len(reasons(f.get(id))) != 0 || f.claim() != id {
			f.t.Errorf("a fit box does not get the task: %v", f.get(id)["holds"])
		}
		unfit("box", nil)
		if f.box = "box"; f.claim() == "" {
			f.t.Error("a box that is fit again gets nothing")
		}
	})
}

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// TestQueueIsNotScanned holds that what is asked of a long queue is read off an
// index of what it is about.
func TestQueueIsNotScanned(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"GROUP BY repo_id, template, (waiting_deps > 0)":     "SEARCH tasks USING INDEX tasks_waiting (account_id=? AND status=?)\nUSE TEMP B-TREE FOR GROUP BY\n",
		task.IsWaiting + " ORDER BY created_at, id LIMIT $2": "SEARCH tasks USING INDEX tasks_waiting (account_id=? AND status=?)\n",
		"priority = $4 AND " + task.IsReady +
			" ORDER BY created_at, id LIMIT $5": "SEARCH tasks USING INDEX tasks_ready (account_id=? AND repo_id=? AND template=? AND priority=?)\n",
	} {
		if got := dbtest.Plan(t, part); !strings.Contains(got, want) || strings.Contains(got, "tasks_status") {
			t.Errorf("%s: %s", part, got)
		}
	}
}

// TestOwnBoxTakesWhatFollows: the box of a member takes what the platform made
// of that member's asks and pull requests, and nobody else's.
func TestOwnBoxTakesWhatFollows(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		ann, bob, nobody := "ann", "bob", ""
		f.write("", func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.User{ID: ann}); err != nil {
				return err
			}
			if err := seed.Add(tx, seed.Member{Account: "acme", User: ann}); err != nil {
				return err
			}
			_, err := seed.SetTarget.Exec(tx, "box", "user", &ann)
			return err
		})
		made := map[string]string{}
		for name, by := range map[string]*string{"ann": &ann, "bob": &bob, "nobody": &nobody} {
			for _, kind := range []string{task.KindWork, task.KindCI} {
				f.write("acme", func(tx *db.Tx) error { // the platform acts
					t, err := f.Create(tx, task.Repo{ID: "acme-web"},
						task.Spec{Kind: kind, Sink: task.SinkQueued, Title: "t", Problem: "p", Template: "default", RequestedBy: by})
					made[t.ID] = name
					if t.CreatedBy != "system" {
						f.t.Errorf("created by %s", t.CreatedBy)
					}
					return err
				})
			}
		}
		var taken []string
		for {
			id := f.claim()
			if id == "" {
				break
			}
			taken = append(taken, made[id])
		}
		if len(taken) == 0 || slices.ContainsFunc(taken, func(by string) bool { return by != "ann" }) {
			f.t.Errorf("ann's box took tasks of %v", taken)
		}
		for id, by := range made {
			if got := reasons(f.get(id)); by != "ann" && (len(got) == 0 || got[0] != task.HoldNoBox) {
				f.t.Errorf("a task of %s is held by %v", by, got)
			}
		}
		status := f.call("acme", "GET", "/v1/queue/status", nil, 200)
		named := 0
		for _, s := range status["data"].([]any) {
			if s := s.(object); s["reason"] == task.HoldNoBox {
				named += len(s["task_ids"].([]any))
			}
		}
		if named != 4 {
			f.t.Errorf("stalls name %d of the four tasks that no box takes: %v", named, status)
		}
	})
}
