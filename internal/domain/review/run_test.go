package review

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
)

func defect(file string, line int, severity, claim string) named {
	return named{File: file, Line: line, Severity: repo.Severity(severity), Kind: "bug", Claim: claim, Why: "w", HowToSee: "h"}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %c%c\n", 'a'+i/26, 'a'+i%26)
	}
	return b.String()
}

// After five pushes to a reviewed pull request, whose finder names the same again each time
// in other words and with other lines, nothing is posted twice, and a higher severity is
// said once.
func TestFivePushes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		text := numbered(40)
		y.commit("a.txt", text)
		y.head()
		y.pass(0)
		y.found(defect("a.txt", 20, "medium", "Beta breaks the other thing."), defect("a.txt", 35, "high", "Delta fails."))
		y.pass(0)
		y.verified(2, 1, 2)
		y.wantRun(Completed, VerdictFailure, 2)
		for push := range 5 {
			text = fmt.Sprintf("new line %d\n", push) + text
			y.commit("a.txt", text)
			y.head()
			y.pass(0)
			y.found(defect("a.txt", 21+push, "critical", fmt.Sprintf("Beta breaks things, found %d.", push)),
				defect("a.txt", 36+push, "high", "Delta fails."))
			y.pass(0)
			y.verified(1, 1) // Delta, which holds the merge
			y.wantRun(Completed, VerdictFailure, 0)
			if got := y.answers["Beta breaks the other thing."]; got != "A later review calls this critical." {
				t.Errorf("push %d: it was said %q", push, got)
			}
		}
		if len(y.posted) != 1 || y.said != 1 {
			t.Errorf("%d reviews posted, %d answers", len(y.posted), y.said)
		}
	})
}

// A review from the head to what is posted; later heads are reviewed by what has changed,
// nothing is posted twice, and what is mended is answered.
func TestReview(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("a.txt", numbered(40))
		y.head()
		y.wantRun(Queued, "", -1)
		if !y.told.Running || len(y.tasks) != 0 {
			t.Errorf("%+v, %d tasks", y.told, len(y.tasks))
		}
		y.pass(0)
		if len(y.tasks) != 1 || y.tasks[0].HeadSHA != y.pr.HeadSHA || y.tasks[0].Template != "t" ||
			!strings.Contains(y.tasks[0].Problem, "git diff "+y.pr.MergeBase+" "+y.pr.HeadSHA) {
			t.Fatalf("%+v", y.tasks)
		}
		y.write(func(tx *db.Tx) error { return y.Moved(tx, TaskMoved{TaskID: "task-1", Running: true}) })
		y.wantRun(Looking, "", -1)
		y.found(defect("a.txt", 5, "high", "Alpha is wrong."), defect("a.txt", 20, "medium", "Beta breaks the other thing."),
			defect("a.txt", 30, "low", "Gamma is untidy."), defect("a.txt", 99, "high", "There is no such line."),
			defect("a.txt", 35, "medium", "Delta may fail in theory."))
		y.wantRun(Sorting, "", -1)
		y.pass(0)
		y.wantRun(Verifying, "", -1)
		if p := y.tasks[1]; p.Template != "other" || strings.Contains(p.Problem, "Gamma") ||
			!strings.Contains(p.Problem, "Alpha is wrong.") ||
			strings.Contains(p.Problem, "\nw\n") {
			t.Errorf("%s", p.Problem)
		}
		y.verified(3, 1, 2)
		y.wantRun(Completed, VerdictFailure, 2)
		want := map[string]string{"Alpha is wrong.": Posted, "Beta breaks the other thing.": Posted, "Gamma is untidy.": Below,
			"There is no such line.": Refuted, "Delta may fail in theory.": Refuted}
		if got := y.states(); !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
		if y.told != (Result{Outcome: Looked, Findings: 1}) || len(y.posted) != 1 || len(y.posted[0].Findings) != 2 ||
			y.posted[0].Findings[0].PlaceLine != 5 {
			t.Errorf("%+v %+v", y.told, y.posted)
		}
		first := y.pr.HeadSHA

		// Alpha's line is mended, and lines above Beta move it.
		text := strings.Replace(numbered(40), "line ae\n", "better\nand more\n", 1)
		y.commit("a.txt", text)
		y.head()
		y.pass(0)
		if p := y.tasks[2].Problem; !strings.Contains(p, "git diff "+first+" "+y.pr.HeadSHA) {
			t.Errorf("%s", p)
		}
		y.found(defect("a.txt", 21, "critical", "Beta breaks something else."))
		y.pass(0)
		if p := y.tasks[3].Problem; !strings.Contains(p, "Alpha is wrong.") || strings.Contains(p, "Beta") {
			t.Errorf("%s", p)
		}
		y.verified(1)
		y.wantRun(Completed, VerdictSuccess, 0)
		want["Alpha is wrong."], want["Beta breaks something else."] = Fixed, Duplicate
		if got := y.states(); !maps.Equal(got, want) || y.answers["Alpha is wrong."] != "Fixed in "+y.pr.HeadSHA+"." ||
			y.answers["Beta breaks the other thing."] != "A later review calls this critical." {
			t.Errorf("%v %v", got, y.answers)
		}
		if y.told != (Result{Outcome: Looked}) || len(y.posted) != 1 {
			t.Errorf("%+v, %d posted", y.told, len(y.posted))
		}
		y.write(func(tx *db.Tx) error {
			all, err := shownOf.All(tx, "acme", y.pr.ID)
			if len(all) != 2 || all[1].Line != 21 || all[1].HeadSHA != y.pr.HeadSHA {
				t.Errorf("%+v", all)
			}
			return err
		})

		// A rebase is not reviewed.
		y.git("checkout", "--quiet", "-B", "base", "main")
		y.commit("other.txt", "o\n")
		y.push("main")
		y.git("checkout", "--quiet", "topic")
		y.git("rebase", "--quiet", "base")
		y.head()
		y.wantRun(Completed, VerdictSuccess, -1)
		if y.last().Note != noteRebase || len(y.tasks) != 4 || y.told.Running {
			t.Errorf("%+v, %d tasks", y.last(), len(y.tasks))
		}
		y.head() // known already
		if n := len(y.runs()); n != 3 {
			t.Errorf("%d runs", n)
		}
		if !slices.Equal(y.checks, []string{Queued, VerdictFailure, Queued, VerdictSuccess, VerdictSuccess}) {
			t.Errorf("%v", y.checks)
		}
		y.write(func(tx *db.Tx) error {
			rows, err := said.All(tx)
			if got := strings.Join(rows, " "); got != "review.queued review.completed review.queued review.completed review.rebased" {
				t.Error(got)
			}
			return errors.Join(err, y.PullOver(tx, y.pr.ID))
		})
		if got := y.states()["Beta breaks the other thing."]; got != Stale {
			t.Errorf("after the end it is %s", got)
		}
	})
}

// When there is a review at all.
func TestWhen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy string
		change func(*yard)
		runs   int
		state  string
	}{
		"by itself":             {"", func(*yard) {}, 1, Queued},
		"of a person":           {"", func(y *yard) { y.pr.Watched = false }, 0, ""},
		"off":                   {"review: {mode: off}\n", func(*yard) {}, 0, ""},
		"on request":            {"review: {mode: on_request}\n", func(*yard) {}, 0, ""},
		"of a closed one":       {"", func(y *yard) { y.pr.Open = false }, 0, ""},
		"without a credential":  {"", func(y *yard) { y.gap = GapNoCredential }, 1, Completed},
		"without a named model": {"", func(y *yard) { y.gap = GapUnresolved }, 1, Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy = c.policy
				c.change(y)
				y.commit("a.txt", "a\n")
				y.head()
				all := y.runs()
				want := Result{Running: c.state == Queued}
				if y.gap != "" {
					want.Outcome = Blind
				}
				if len(all) != c.runs || y.told != want {
					t.Fatalf("%+v, %+v", all, y.told)
				}
				if y.gap != "" {
					y.wantRun(Completed, VerdictNeutral, -1)
					if y.last().Blind != y.gap {
						t.Errorf("%+v", y.last())
					}
				} else if c.runs > 0 {
					y.wantRun(c.state, "", -1)
				}
				asked, r, by := false, y.ref(), "ada"
				y.write(func(tx *db.Tx) (err error) {
					asked, err = y.Request(tx, r, y.pr, &by)
					return err
				})
				if want := strings.Contains("of a person on request without a credential without a named model", name); asked != want {
					t.Errorf("on request: %t", asked)
				}
			})
		})
	}
}

// How a review ends without an answer.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(*yard)
		state string
		stops []string
	}{
		"the branch moves": {func(y *yard) { y.commit("a.txt", "b\n"); y.head() }, Cancelled, []string{"task-1"}},
		"it is closed": {func(y *yard) {
			y.pr.Open = false
			y.found(defect("a.txt", 1, "high", "It is."))
			y.pass(0)
		}, Cancelled, []string{"task-1"}},
		"its task fails": {func(y *yard) {
			y.write(func(tx *db.Tx) error { return y.Moved(tx, TaskMoved{TaskID: "task-1", Over: true, Why: "gave up"}) })
		}, Failed, nil},
		"its task is cancelled": {func(y *yard) {
			y.write(func(tx *db.Tx) error { return y.Moved(tx, TaskMoved{TaskID: "task-1", Over: true, Cancelled: true}) })
		}, Cancelled, nil},
		"the verifier fails": {func(y *yard) {
			y.found(defect("a.txt", 1, "high", "It is."))
			y.pass(0)
			y.write(func(tx *db.Tx) error { return y.Moved(tx, TaskMoved{TaskID: "task-2", Over: true, Why: "gave up"}) })
		}, Failed, nil},
		"the code is gone": {func(y *yard) {
			y.found(defect("a.txt", 1, "high", "It is."))
			y.git("update-ref", "-d", "refs/nothing")
			y.Hosts.Drop("builtin")
			for range 20 {
				y.pass(10 * time.Minute)
			}
		}, Failed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				y.commit("a.txt", "a\n")
				y.head()
				y.pass(0)
				c.end(y)
				first := y.runs()[0]
				if first.State != c.state || first.Verdict == nil || *first.Verdict != VerdictNeutral || first.Kept != nil ||
					first.Note == "" {
					t.Errorf("%+v", first)
				}
				y.pass(0)
				y.pass(0)
				if !reflect.DeepEqual(y.stopped, c.stops) || len(y.posted) != 0 {
					t.Errorf("stopped %v, posted %v", y.stopped, y.posted)
				}
				// What comes late changes nothing.
				y.write(func(tx *db.Tx) error { return y.Reported(tx, "task-1", `{"findings": []}`) })
				if again := y.runs()[0]; again.State != c.state {
					t.Errorf("%+v", again)
				}
			})
		})
	}
}

// Without room in the queue both passes wait.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.full = true
		y.commit("a.txt", "a\n")
		y.head()
		for range 20 {
			y.pass(2 * time.Minute)
		}
		y.wantRun(Queued, "", -1)
		y.full = false
		y.pass(2 * time.Minute)
		y.found(defect("a.txt", 1, "high", "It is."))
		y.full = true
		for range 20 {
			y.pass(2 * time.Minute)
		}
		y.wantRun(Sorting, "", -1)
		if len(y.states()) != 0 {
			t.Errorf("%v", y.states())
		}
		y.full = false
		y.pass(2 * time.Minute)
		y.wantRun(Verifying, "", -1)
	})
}

// At most ten findings of a review and thirty of a pull request are posted, the worst first.
func TestLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		words := strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa quebec romeo sierra")
		total := 0
		for round := range 4 {
			file := fmt.Sprintf("f%d.txt", round)
			y.commit(file, numbered(60))
			y.head()
			y.pass(0)
			var all []named
			for i := range 13 {
				severity := "medium"
				if i == 12 {
					severity = "critical"
				}
				all = append(all, defect(file, 4*(i+1), severity, strings.Repeat(words[i]+" ", 3)+fmt.Sprint(round)))
			}
			y.found(all...)
			y.pass(0)
			y.verified(16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16) // also what holds the merge
			posted := min(maxPosted, maxOnPull-total)
			total += posted
			y.wantRun(Completed, VerdictFailure, int64(posted))
			if more := y.last().More; more != int64(13-posted) {
				t.Errorf("round %d: %d more", round, more)
			}
			if round < 3 && y.posted[round].Findings[0].Severity != "critical" {
				t.Errorf("round %d begins with %+v", round, y.posted[round].Findings[0])
			}
		}
	})
}
