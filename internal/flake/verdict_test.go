package flake

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// base is n runs at the base, an hour apart, of which those with the given numbers failed.
func base(n int, fp string, failed ...int) (runs []Run) {
	for i := range n {
		r := Run{SHA: fmt.Sprintf("base%d", i), Attempt: 1, Side: OnBase, At: now.Add(-time.Duration(n-i) * time.Hour)}
		if slices.Contains(failed, i) {
			r.Prints = []string{fp}
		}
		runs = append(runs, r)
	}
	return runs
}

func pullRun(pr, sha string, attempt int, prints ...string) Run {
	return Run{SHA: sha, Attempt: attempt, Side: OnPull, Pull: pr, At: now.Add(time.Duration(attempt) * time.Minute), Prints: prints}
}

func sameBlob(string, string) string { return "blob" }

// The rows of the table of the design, from the log to the verdict.
func TestRows(t *testing.T) {
	t.Parallel()
	read := func(i int) *Failure {
		f := Read(Job{Repo: "r", Name: logs[i].job, Step: logs[i].step, Log: logs[i].log})
		return &f
	}
	judge := func(h History, c Case) Decision {
		h.Now, h.Pull = now, "own"
		if h.Blob == nil {
			h.Blob = sameBlob
		}
		c.Evidence = map[string]Evidence{}
		for _, f := range []*Failure{c.Failure, c.Before} {
			if f != nil {
				for _, p := range f.Prints {
					c.Evidence[p.FP] = h.Of(p)
				}
			}
		}
		return Judge(c)
	}
	want := func(d Decision, v Verdict, round bool) {
		t.Helper()
		if d.Verdict != v || d.Round != round || d.Wait {
			t.Errorf("%+v, want %s", d, v)
		}
	}

	f := read(0) // go: the base failed so twice of 180 and passed later
	runs := base(180, f.Prints[0].FP, 20, 90)
	want(judge(History{Runs: runs}, Case{Failure: f, Changed: []string{"internal/store/store_test.go"}}), Rerun, false)
	runs = append(runs, pullRun("own", "head", 1, f.Prints[0].FP), pullRun("own", "head", 2))
	d := judge(History{Runs: runs}, Case{Before: f, Reruns: 1})
	want(d, Flake, false)
	if e := (History{Now: now, Pull: "own", Runs: runs, Blob: sameBlob}).Of(f.Prints[0]); e.String() != "3 of 181" {
		t.Errorf("it is seen %s", e)
	}

	f = read(1) // pytest: never seen, and the change touches the file of the test
	want(judge(History{Runs: base(10, "")}, Case{Failure: f, Changed: []string{"tests/test_api.py"}}), New, true)

	f = read(3) // jest: on two other pull requests, then the same again
	fp := f.Prints[0].FP
	runs = append(base(10, ""), pullRun("a", "1", 1, fp), pullRun("b", "2", 1, fp))
	want(judge(History{Runs: runs}, Case{Failure: f}), Rerun, false)
	if e := (History{Now: now, Pull: "own", Runs: runs}).Of(f.Prints[0]); !e.Elsewhere || e.Known() || e.N != 0 {
		t.Errorf("%+v", e)
	}
	want(judge(History{Runs: runs}, Case{Failure: f, Before: f, Reruns: 1}), Real, true)

	f = read(4) // cargo: never seen and not touched; it passes when it is run again
	runs = base(95, "")
	want(judge(History{Runs: runs}, Case{Failure: f, Changed: []string{"README.md"}}), Rerun, false)
	runs = append(runs, pullRun("own", "head", 1, f.Prints[0].FP), pullRun("own", "head", 2))
	want(judge(History{Runs: runs}, Case{Before: f, Reruns: 1}), Flake, false)
	if e := (History{Now: now, Pull: "own", Runs: runs}).Of(f.Prints[0]); e.String() != "1 of 96" {
		t.Errorf("it is seen %s", e)
	}

	f = read(5) // gradle: the latest run of the base fails so, too
	want(judge(History{}, Case{Failure: f, Before: f, Base: f, Reruns: 1}), BaseBroken, false)

	f = read(6) // playwright: known; another test fails when it is run again
	runs = base(20, f.Prints[0].FP, 3)
	other := Read(Job{Repo: "r", Name: logs[6].job, Log: "  1) [chromium] › logout.spec.ts:3:5 › signs out ──\n\n    Error: no"})
	want(judge(History{Runs: runs}, Case{Failure: f}), Rerun, false)
	want(judge(History{Runs: runs}, Case{Failure: &other, Before: f, Reruns: 1}), Rerun, false)
	want(judge(History{Runs: runs}, Case{Failure: &other, Before: f, Reruns: 1, Changed: []string{"e2e/logout.spec.ts"}}), New, true)

	f = read(7) // a build error is new at once, and a failure of the machine never is
	want(judge(History{}, Case{Failure: f}), New, true)
	f = read(8)
	want(judge(History{}, Case{Failure: f, Changed: []string{"x"}}), Rerun, false)
	want(judge(History{}, Case{Failure: f, Before: f, Reruns: 1}), Rerun, false)
	want(judge(History{}, Case{Failure: f, Before: f, Reruns: 2}), Infra, false)
	want(judge(History{}, Case{Before: f, Reruns: 1}), Infra, false)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	a, b := one("a"), one("b")
	if d := Judge(Case{Failure: a, RepoReruns: MaxRepoReruns}); d.Verdict != Rerun || !d.Wait {
		t.Errorf("over the limit of the repository: %+v", d)
	}
	if d := Judge(Case{Failure: a, Before: b, Reruns: MaxReruns}); d.Verdict != Real || !d.Round {
		t.Errorf("over the limit of the job: %+v", d)
	}
	m := &Failure{Class: ClassTest, Prints: []Print{{FP: "m", Many: true}}}
	e := map[string]Evidence{"m": {Rerun: true, Base: true}}
	if d := Judge(Case{Failure: m, Evidence: e}); d.Verdict != New {
		t.Errorf("many: %+v", d)
	}
	if d := Judge(Case{Before: m}); d.Verdict != Passed {
		t.Errorf("many, then passed: %+v", d)
	}
	if d := Judge(Case{}); d.Verdict != Passed {
		t.Errorf("%+v", d)
	}
	both := &Failure{Class: ClassTest, Prints: []Print{{FP: "a"}, {FP: "b", Files: []string{"b.go"}}}}
	d := Judge(Case{Failure: both, Changed: []string{"b.go"}, Evidence: map[string]Evidence{"a": {Base: true}}})
	if d.Verdict != New || len(d.Prints) != 1 || d.Prints[0].FP != "b" || len(d.Known) != 1 || d.Known[0].FP != "a" {
		t.Errorf("a new failure besides a known one: %+v", d)
	}
	if d := Judge(Case{Failure: both, Before: both, Base: a}); d.Verdict != Real || len(d.Prints) != 1 || d.Prints[0].FP != "b" {
		t.Errorf("one is broken at the base: %+v", d)
	}
}

func one(fp string) *Failure { return &Failure{Class: ClassTest, Prints: []Print{{FP: fp}}} }

func TestEvidence(t *testing.T) {
	t.Parallel()
	p := Print{FP: "f", Files: []string{"a_test.go"}}
	of := func(h History) Evidence {
		h.Now, h.Pull = now, "own"
		return h.Of(p)
	}
	old := []Run{{SHA: "1", Attempt: 1, At: now.Add(-15 * 24 * time.Hour), Prints: []string{"f"}}}
	second := func(a, b string) bool { return a == "2" && b == "1" }
	changed := func(sha, _ string) string { return sha }
	for name, c := range map[string]struct {
		h    History
		want Evidence
	}{
		"the base mended its test":    {History{Runs: base(9, "f", 2), Blob: changed}, Evidence{D: 9}},
		"the file is not known":       {History{Runs: base(9, "f", 2)}, Evidence{D: 9}},
		"the base did not pass again": {History{Runs: base(9, "f", 8), Blob: sameBlob}, Evidence{D: 9}},
		"it passed at the base":       {History{Runs: base(9, "f", 2, 3), Blob: sameBlob}, Evidence{Base: true, N: 2, D: 9}},
		"before the newest 200 runs":  {History{Runs: base(210, "f", 2), Blob: sameBlob}, Evidence{D: 200}},
		"longer ago than 14 days":     {History{Runs: old}, Evidence{}},
		"on one other pull request": {History{Runs: []Run{pullRun("a", "1", 1, "f"), pullRun("own", "2", 1, "f")}},
			Evidence{D: 2}},
		"on two that contain one another": {
			History{Runs: []Run{pullRun("a", "1", 1, "f"), pullRun("b", "2", 1, "f")}, Contains: second},
			Evidence{D: 2}},
		"passed before it failed":  {History{Runs: []Run{pullRun("a", "1", 1), pullRun("a", "1", 2, "f")}}, Evidence{D: 1}},
		"passed on another commit": {History{Runs: []Run{pullRun("a", "1", 1, "f"), pullRun("a", "2", 1)}}, Evidence{D: 2}},
		"passed on a later attempt": {
			History{Runs: []Run{pullRun("a", "1", 1, "f"), pullRun("a", "1", 3)}},
			Evidence{Rerun: true, N: 1, D: 1}},
	} {
		if got := of(c.h); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := (Evidence{N: 4, D: 20}).String(); got != "4 of 20, which is often" {
		t.Error(got)
	}
	if got := (Evidence{N: 3, D: 20}).String(); got != "3 of 20" {
		t.Error(got)
	}
}
