package review

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// reviewed has the present head reviewed: what a finder names, all of it confirmed.
func (y *yard) reviewed(all ...named) {
	y.t.Helper()
	y.head()
	y.pass(0)
	y.found(all...)
	y.pass(0)
	if y.last().State != Verifying {
		return
	}
	every := make([]int, 60)
	for i := range every {
		every[i] = i + 1
	}
	y.verified(60, every...)
}

// only is the one finding of the pull request.
func (y *yard) only() Finding {
	y.t.Helper()
	all := y.all()
	if len(all) != 1 {
		y.t.Fatalf("%d findings: %+v", len(all), all)
	}
	return all[0]
}

// at is where a finding is, as people write it.
func (f Finding) at() string { return fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Side) }

// remove deletes a file, and rename renames one.
func (y *yard) remove(path string) {
	y.git("rm", "--quiet", path)
	y.git("commit", "--quiet", "--message", "Remove "+path)
}

func (y *yard) rename(from, to string) {
	if err := os.MkdirAll(filepath.Dir(filepath.Join(y.work, to)), 0o755); err != nil {
		y.t.Fatal(err)
	}
	y.git("mv", from, to)
	y.git("commit", "--quiet", "--message", "Rename "+from)
}

// What holds the merge is looked at again on every head that is reviewed, by its claim and with
// the text around it: a mend is seen wherever it is, and what the verifier did not refute stays.
func TestMendedBesideItsLines(t *testing.T) {
	t.Parallel()
	guard := strings.Replace(numbered(20), "line ae\n", "guard\nline ae\n", 1)
	other := strings.Replace(guard, "line ae", "LINE", 1)
	for name, c := range map[string]struct {
		mend    func(*yard)
		verdict string // "": the verifier fails
		state   string
		line    int
	}{
		"a guard above":           {func(y *yard) { y.commit("a.txt", guard) }, "refuted", Fixed, 6},
		"another file":            {func(y *yard) { y.commit("helper.txt", "mended\n") }, "refuted", Fixed, 5},
		"a guard that is none":    {func(y *yard) { y.commit("a.txt", guard) }, "confirmed", Posted, 6},
		"nobody can tell":         {func(y *yard) { y.commit("a.txt", guard) }, "cannot_say", Posted, 6},
		"the verifier says less":  {func(y *yard) { y.commit("a.txt", guard) }, "nothing", Posted, 6},
		"the verifier fails":      {func(y *yard) { y.commit("a.txt", guard) }, "", Posted, 6},
		"its line, and it is so":  {func(y *yard) { y.commit("a.txt", other) }, "confirmed", Posted, 5},
		"its line, and it is not": {func(y *yard) { y.commit("a.txt", other) }, "refuted", Fixed, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				y.commit("a.txt", numbered(20))
				y.reviewed(defect("a.txt", 5, "high", "It is wrong."))
				c.mend(y)
				y.head()
				y.pass(0)
				y.found()
				y.pass(0)
				y.wantRun(Verifying, "", -1)
				asked := y.tasks[len(y.tasks)-1].Problem
				around := "5  guard"
				if name == "another file" {
					around = "5  line ae"
				}
				if !strings.Contains(asked, "It is wrong.") || !strings.Contains(asked, "confirmed on an earlier head") ||
					!strings.Contains(asked, around) {
					t.Errorf("asked: %s", asked)
				}
				switch c.verdict {
				case "":
					taskID := fmt.Sprint("task-", len(y.tasks))
					y.write(func(tx *db.Tx) error { return y.Moved(tx, TaskMoved{TaskID: taskID, Over: true, Why: "gave up"}) })
				case "nothing":
					y.verified(0)
				default:
					y.answer(map[string]any{"verdicts": []any{map[string]any{"claim": 1, "verdict": c.verdict, "evidence": "Seen."}}})
				}
				f, said := y.only(), c.verdict == "refuted" || c.verdict == "confirmed"
				if f.State != c.state || f.Line != c.line || f.HeadSHA != y.pr.HeadSHA || f.Unlooked == said || f.Evidence != "Seen." {
					t.Errorf("%+v", f)
				}
				if left := y.last().Unlooked; (left == 0) != said || (y.told.Findings == 0) != (c.state == Fixed) {
					t.Errorf("%d left over, %+v", left, y.told)
				}
				if (y.answers["It is wrong."] == "Fixed in "+y.pr.HeadSHA+".") != (c.state == Fixed) {
					t.Errorf("%v", y.answers)
				}

				// On the same head nobody is asked again, unless a person asks.
				before := len(y.tasks)
				y.head()
				y.pass(0)
				if len(y.tasks) != before {
					t.Errorf("%d tasks, want %d", len(y.tasks), before)
				}
				if _, err := y.rerun(y.ctx(), rerunIn{ID: y.pr.ID}); err != nil {
					t.Fatal(err)
				}
				y.found()
				y.pass(0)
				if c.state == Fixed {
					y.wantRun(Completed, VerdictSuccess, 0)
					return
				}
				y.verified(1)
				y.wantRun(Completed, VerdictSuccess, 0)
				if f := y.only(); f.State != Fixed || y.told.Findings != 0 {
					t.Errorf("%+v, %+v", f, y.told)
				}
			})
		})
	}
}

// A review that runs again looks at all that is open, also at what does not hold the merge,
// which a new head has looked at only where its code has changed.
func TestRerunLooksAtAllThatIsOpen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("a.txt", numbered(20))
		y.reviewed(defect("a.txt", 5, "medium", "Alpha is odd."), defect("a.txt", 15, "medium", "Beta breaks."))
		y.commit("b.txt", "more\n")
		y.reviewed()
		if len(y.tasks) != 3 {
			t.Fatalf("%d tasks", len(y.tasks))
		}
		y.commit("a.txt", strings.Replace(numbered(20), "line ao\n", "line ao, mended\n", 1))
		y.head()
		y.pass(0)
		y.found()
		y.pass(0)
		if p := y.tasks[4].Problem; strings.Contains(p, "Alpha") || !strings.Contains(p, "Beta") {
			t.Errorf("%s", p)
		}
		y.verified(1)
		if _, err := y.rerun(y.ctx(), rerunIn{ID: y.pr.ID}); err != nil {
			t.Fatal(err)
		}
		y.found()
		y.pass(0)
		if p := y.tasks[len(y.tasks)-1].Problem; !strings.Contains(p, "Alpha") || strings.Contains(p, "Beta") {
			t.Errorf("%s", p)
		}
	})
}

// A verifier looks again at so many findings of earlier reviews at once, beside what is new.
// What is left over is told, stays, and comes first on the next head.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		words := strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliett")
		for round := range 3 {
			file := fmt.Sprintf("f%d.txt", round)
			y.commit(file, numbered(60))
			var all []named
			for i, w := range words {
				all = append(all, defect(file, 5*(i+1), "high", strings.Repeat(w+" ", 3)+fmt.Sprint(round)))
			}
			y.reviewed(all...)
		}
		if y.told.Findings != maxOnPull {
			t.Fatalf("%+v", y.told)
		}
		look := func() (asked []string) {
			t.Helper()
			y.commit("other.txt", fmt.Sprint(len(y.tasks)))
			y.head()
			y.pass(0)
			y.found(defect("other.txt", 1, "critical", "Something new is very wrong here."))
			y.pass(0)
			for _, f := range y.all() {
				if f.ClaimNo > 0 {
					asked = append(asked, f.Claim)
				}
			}
			every := make([]int, 60)
			for i := range every {
				every[i] = i + 1
			}
			y.verified(60, every...)
			return asked
		}
		first := look()
		if len(first) != maxAgain+1 || y.last().Unlooked != maxOnPull-maxAgain {
			t.Errorf("%d asked, %d left over", len(first), y.last().Unlooked)
		}
		second := look()
		for _, f := range y.all() {
			if f.State == Posted && !slices.Contains(first, f.Claim) && !slices.Contains(second, f.Claim) {
				t.Errorf("%q was not looked at", f.Claim)
			}
		}
		if len(second) != maxAgain+1 || y.last().Unlooked != maxOnPull-maxAgain {
			t.Errorf("%d asked, %d left over", len(second), y.last().Unlooked)
		}
	})
}

// A finding is about the side that has its line, whatever its file became: a deleted, renamed
// or shortened one. What is of no side is refuted unseen.
func TestSideOfAFinding(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.git("checkout", "--quiet", "main")
		for _, name := range []string{"gone", "was", "short"} {
			y.commit(name+".txt", strings.ReplaceAll(numbered(20), "line", name))
		}
		y.push("main")
		y.git("checkout", "--quiet", "-B", "topic")
		y.remove("gone.txt")
		y.rename("was.txt", "sub/now.txt")
		y.commit("short.txt", strings.ReplaceAll(numbered(10), "line", "short"))
		y.commit("new.txt", numbered(5))
		with := func(n named, side string) named { n.Side = side; return n }
		y.reviewed(
			defect("gone.txt", 12, "critical", "Somebody reads the file that goes."),
			with(defect("gone.txt", 3, "high", "They say that it is there."), codehost.SideHead),
			with(defect("gone.txt", 18, "high", "Another thing falls."), codehost.SideBase),
			defect("was.txt", 7, "high", "By its earlier name."),
			defect("sub/now.txt", 15, "high", "With a name of its own."),
			with(defect("sub/now.txt", 2, "high", "Before the move."), codehost.SideBase),
			defect("short.txt", 19, "high", "What was cut off is missed."),
			with(defect("new.txt", 4, "high", "A new file has no other side."), codehost.SideBase),
			defect("gone.txt", 21, "high", "No line of any side."),
			with(defect("short.txt", 20, "high", "Not at the head."), codehost.SideHead),
		)
		want := map[string]string{
			"Somebody reads the file that goes.": "gone.txt:12 LEFT posted",
			"They say that it is there.":         "gone.txt:3 LEFT posted",
			"Another thing falls.":               "gone.txt:18 LEFT posted",
			"By its earlier name.":               "sub/now.txt:7 LEFT posted",
			"With a name of its own.":            "sub/now.txt:15 RIGHT posted",
			"Before the move.":                   "sub/now.txt:2 LEFT posted",
			"What was cut off is missed.":        "short.txt:19 LEFT posted",
			"A new file has no other side.":      "new.txt:4 RIGHT posted",
			"No line of any side.":               "gone.txt:21 RIGHT refuted",
			"Not at the head.":                   "short.txt:20 RIGHT refuted",
		}
		for _, f := range y.all() {
			if got := f.at() + " " + f.State; got != want[f.Claim] {
				t.Errorf("%s: %s, want %s", f.Claim, got, want[f.Claim])
			}
			if f.State == Posted && f.Anchor == "" {
				t.Errorf("%s: no text", f.Claim)
			}
		}
		y.wantRun(Completed, VerdictFailure, 8)
		if y.tasks[1].Problem == "" || !strings.Contains(y.tasks[1].Problem, "at gone.txt:12 of the merge base") {
			t.Errorf("%s", y.tasks[1].Problem)
		}
		for _, f := range y.posted[0].Findings {
			if f.File == "gone.txt" && f.PlaceLine != f.Line {
				t.Errorf("%s is placed at %d", f.at(), f.PlaceLine)
			}
		}
		y.write(func(tx *db.Tx) error {
			open, err := OpenOf(tx, y.pr.ID)
			if text := RoundProblem(open); !strings.Contains(text, "at gone.txt:12 before the change, which deletes it") {
				t.Errorf("%s", text)
			}
			return err
		})
	})
}

// A finding goes with its code: to another line, another name of the file, to the merge base if
// the head deletes the file, and to where a rebase has put it.
func TestFindingFollowsItsCode(t *testing.T) {
	t.Parallel()
	text := numbered(20)
	moved := strings.Replace(text, "line ae\nline af\nline ag\n", "", 1) + "line ac\nline ad\nline ae\nline af\nline ag\n"
	for name, c := range map[string]struct {
		change func(*yard)
		want   string
	}{
		"lines above":               {func(y *yard) { y.commit("a.txt", "x\nx\n"+text) }, "a.txt:7 RIGHT"},
		"another place of the file": {func(y *yard) { y.commit("a.txt", moved) }, "a.txt:20 RIGHT"},
		"renamed":                   {func(y *yard) { y.rename("a.txt", "b.txt") }, "b.txt:5 RIGHT"},
		"renamed into a folder":     {func(y *yard) { y.rename("a.txt", "sub/a.txt") }, "sub/a.txt:5 RIGHT"},
		"renamed, and lines above": {func(y *yard) {
			y.git("mv", "a.txt", "b.txt")
			y.commit("b.txt", "x\n"+text)
		}, "b.txt:6 RIGHT"},
		"renamed twice": {func(y *yard) {
			y.rename("a.txt", "b.txt")
			y.reviewed()
			y.rename("b.txt", "c.txt")
		}, "c.txt:5 RIGHT"},
		"deleted": {func(y *yard) { y.remove("a.txt") }, "a.txt:5 LEFT"},
		"renamed, then deleted": {func(y *yard) {
			y.rename("a.txt", "b.txt")
			y.reviewed()
			y.remove("b.txt")
		}, "a.txt:5 LEFT"},
		"deleted, then lines above it in the base": {func(y *yard) {
			y.remove("a.txt")
			y.reviewed()
			y.git("checkout", "--quiet", "main")
			y.commit("a.txt", "x\nx\n"+text)
			y.push("main")
			y.git("checkout", "--quiet", "topic")
			y.git("reset", "--quiet", "--hard", "main")
			y.remove("a.txt")
			y.commit("b.txt", "another change\n")
		}, "a.txt:7 LEFT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				y.git("checkout", "--quiet", "main")
				y.commit("a.txt", text)
				y.push("main")
				y.git("checkout", "--quiet", "-B", "topic")
				y.commit("c.md", "change\n")
				y.reviewed(defect("a.txt", 5, "high", "It is wrong."))
				c.change(y)
				y.reviewed(defect(strings.Split(c.want, ":")[0], y.only().Line, "low", "It is wrong."))
				all := y.all()
				if f := all[0]; f.at() != c.want || f.State != Posted || f.HeadSHA != y.pr.HeadSHA {
					t.Errorf("%s, %+v", f.at(), f)
				}
				if len(y.posted) != 1 {
					t.Errorf("%d reviews posted", len(y.posted))
				}
				// Whatever it became, a mend is seen.
				y.commit("helper.txt", "mended\n")
				y.head()
				y.pass(0)
				y.found()
				y.pass(0)
				y.verified(1)
				y.wantRun(Completed, VerdictSuccess, 0)
			})
		})
	}
}

// A rebase is not reviewed, yet what was found beside the change goes where its lines are.
func TestFindingFollowsARebase(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.git("checkout", "--quiet", "main")
		y.commit("a.txt", numbered(40))
		y.push("main")
		y.git("checkout", "--quiet", "-B", "topic")
		y.commit("b.txt", "what the change is\n")
		y.reviewed(defect("a.txt", 20, "high", "It is wrong."))
		y.git("checkout", "--quiet", "main")
		y.commit("a.txt", "x\nx\nx\n"+numbered(40))
		y.push("main")
		y.git("checkout", "--quiet", "topic")
		y.git("rebase", "--quiet", "main")
		y.head()
		if y.last().Note != noteRebase {
			t.Fatalf("%+v", y.last())
		}
		y.wantRun(Completed, VerdictFailure, -1)
		y.pass(0)
		if f := y.only(); f.at() != "a.txt:23 RIGHT" || f.HeadSHA != y.pr.HeadSHA || f.State != Posted {
			t.Errorf("%s, %+v", f.at(), f)
		}
		if len(y.tasks) != 2 || y.last().Carry {
			t.Errorf("%d tasks, %+v", len(y.tasks), y.last())
		}
	})
}

// Closing a pull request and opening it again does not take away what was found in it.
func TestOpenedAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("a.txt", numbered(20))
		y.reviewed(defect("a.txt", 5, "high", "It is wrong."), defect("a.txt", 15, "high", "Another thing fails."))
		second := y.all()[1].ID
		y.write(func(tx *db.Tx) error { return y.Service.Answer(tx, second, false) })
		was := y.states()
		y.pr.Open = false
		y.write(func(tx *db.Tx) error { return y.PullOver(tx, y.pr.ID) })
		y.head() // of a closed one
		for claim, state := range y.states() {
			if state != Stale {
				t.Errorf("%s is %s", claim, state)
			}
		}
		y.pr.Open = true
		y.head()
		if got := y.states(); !maps.Equal(got, was) || y.told.Findings != 1 || y.told.Outcome != Looked {
			t.Errorf("%v, want %v; %+v", got, was, y.told)
		}
	})
}

// A review that ended because the pull request was not open is made when it is open again; one
// that a person cancelled is not.
func TestReviewedWhenItIsOpenAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("a.txt", "a\n")
		y.head()
		y.pr.Open, y.pr.Why = false, "the pull request is a draft"
		y.pass(0)
		y.head()
		y.wantRun(Cancelled, VerdictNeutral, -1)
		y.pr.Open, y.pr.Why = true, ""
		y.head()
		y.wantRun(Queued, "", -1)
		y.pass(0)
		y.write(func(tx *db.Tx) error { return y.Moved(tx, TaskMoved{TaskID: "task-1", Over: true, Cancelled: true}) })
		y.head()
		y.wantRun(Cancelled, VerdictNeutral, -1)
		if len(y.runs()) != 2 {
			t.Errorf("%+v", y.runs())
		}
	})
}
