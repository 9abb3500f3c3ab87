package review

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/id"
	_ "yardmaster/internal/proof/chance" // seeds rapid
)

// A finding only moves as the states allow, whatever happens in whatever order; what is
// posted was confirmed; and the pull request knows how many findings hold its merge.
func TestFindingsUnderDisorder(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y, serial, cases, failed := open(t, e), 0, 0, false
			rapid.Check(t, func(r *rapid.T) {
				if cases++; cases > enough && !failed {
					return
				}
				defer func() { failed = failed || r.Failed() }()
				y.disorder(r, &serial)
			})
		})
	}
}

// enough is how many cases are played, with git and a database.
const enough = 25

// disorder plays some steps with a pull request of its own. serial makes texts new.
func (y *yard) disorder(r *rapid.T, serial *int) {
	y.pr.ID, y.told = id.New(), Result{}
	y.commit("a.txt", numbered(30))
	text := numbered(30)
	was := map[string]Finding{}
	confirmed := map[string]bool{}
	steps := map[string]func(){
		"head": func() {
			*serial++
			at := rapid.IntRange(0, 29).Draw(r, "line")
			lines := splitLines([]byte(text))
			lines[at%len(lines)] = fmt.Sprint("changed ", *serial)
			text = ""
			for _, l := range lines {
				text += l + "\n"
			}
			y.commit("a.txt", text)
			y.head()
		},
		"pass": func() { y.pass(0) },
		"find": func() {
			run := y.open()
			if run == nil || run.TaskID == nil || run.State != Queued {
				return
			}
			var all []named
			for range rapid.IntRange(0, 4).Draw(r, "findings") {
				*serial++
				severity := rapid.SampledFrom(repo.Severity("").Values()).Draw(r, "severity")
				claim := fmt.Sprintf("%x is %x", *serial*7919, *serial*104729)
				all = append(all, defect("a.txt", rapid.IntRange(1, 35).Draw(r, "place"), severity, claim))
			}
			y.found(all...)
		},
		"verify": func() {
			run := y.open()
			if run == nil || run.State != Verifying {
				return
			}
			var yes []int
			for _, f := range y.all() {
				if f.ClaimNo == 0 {
					continue
				}
				if confirmed[f.ID] = rapid.Bool().Draw(r, "confirmed"); confirmed[f.ID] {
					yes = append(yes, f.ClaimNo)
				}
			}
			y.verified(60, yes...)
		},
		"fail": func() {
			run := y.open()
			if run == nil || run.TaskID == nil {
				return
			}
			m := TaskMoved{TaskID: *run.TaskID, Over: true, Cancelled: rapid.Bool().Draw(r, "cancelled"), Why: "gave up"}
			if run.VerifyTaskID != nil {
				m.TaskID = *run.VerifyTaskID
			}
			y.write(func(tx *db.Tx) error { return y.Moved(tx, m) })
		},
		"dismiss": func() {
			if f := y.pick(r); f != nil {
				_, err := y.dismiss(y.ctx(), dismissIn{ID: f.ID})
				if closed := !allowed(f.State, Dismissed) && f.State != Dismissed; (err != nil) != closed {
					r.Fatalf("%s is dismissed: %v", f.State, err)
				}
			}
		},
		"answer": func() {
			if f := y.pick(r); f != nil {
				y.write(func(tx *db.Tx) error { return y.Service.Answer(tx, f.ID, rapid.Bool().Draw(r, "again")) })
			}
		},
		"rerun": func() {
			if _, err := y.rerun(y.ctx(), rerunIn{ID: y.pr.ID}); err != nil && len(y.runs()) > 0 {
				r.Fatal(err)
			}
		},
	}
	names := slices.Sorted(maps.Keys(steps))
	y.head()
	for range rapid.IntRange(5, 15).Draw(r, "steps") {
		steps[rapid.SampledFrom(names).Draw(r, "step")]()
		holding := 0
		for _, f := range y.all() {
			before, known := was[f.ID]
			switch {
			case known && before.State != f.State && !reachable(before.State, f.State):
				r.Fatalf("%s went from %s to %s", f.Claim, before.State, f.State)
			case !known && !slices.Contains([]string{Raw, Refuted, Duplicate, Below}, f.State):
				r.Fatalf("%s began as %s", f.Claim, f.State)
			case known && before.State == Raw && f.State == Posted && !confirmed[f.ID]:
				r.Fatalf("%s is posted, and nobody confirmed it", f.Claim)
			case f.State == Fixed && f.FixedSHA == nil, f.State == Dismissed && f.DismissedBy == nil:
				r.Fatalf("%+v", f)
			}
			if holds(f.State, f.Severity, "high") {
				holding++
			}
			was[f.ID] = f
		}
		run := y.open()
		outcome := ""
		for _, r := range y.runs() {
			switch {
			case r.HeadSHA != y.pr.HeadSHA || outcome == Looked:
			case r.State == Completed && r.Blind == "":
				outcome = Looked
			case r.State == Completed:
				outcome = Blind
			case r.State == Failed || r.State == Cancelled:
				outcome = r.State
			}
		}
		if y.told != (Result{Running: run != nil, Outcome: outcome, Findings: holding}) {
			r.Fatalf("the pull request was told %+v; %d findings hold it, and %+v", y.told, holding, run)
		}
		if run == nil {
			for _, f := range y.all() {
				if f.ClaimNo != 0 {
					r.Fatalf("%+v is claimed in no run", f)
				}
			}
		}
	}
}

// reachable tells whether a finding may have gone from one state to another, by one move or
// by two at once.
func reachable(from, to string) bool {
	return allowed(from, to) || slices.ContainsFunc(moves[from], func(over string) bool { return allowed(over, to) })
}

func (y *yard) all() (all []Finding) {
	y.write(func(tx *db.Tx) (err error) {
		all, err = every.All(tx, "acme", y.pr.ID)
		return err
	})
	return all
}

func (y *yard) open() *Run {
	for _, r := range y.runs() {
		if r.EndedAt == nil {
			return &r
		}
	}
	return nil
}

// pick is a finding that people see.
func (y *yard) pick(r *rapid.T) *Finding {
	seen := slices.DeleteFunc(y.all(), func(f Finding) bool { return !shown(f.State) })
	if len(seen) == 0 {
		return nil
	}
	return &seen[rapid.IntRange(0, len(seen)-1).Draw(r, "finding")]
}
