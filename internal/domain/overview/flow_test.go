package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
)

// A task counts on the day on which it was merged, and each moment of it for one phase; what no
// phase explains counts for none.
func TestFlow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		now := y.now().UTC()
		day := now.Truncate(oneDay)
		at := func(days, minutes int) int64 {
			return day.Add(time.Duration(days)*oneDay + time.Duration(minutes)*time.Minute).UnixMicro()
		}
		work, slow, pr, pr2 := id.New(), id.New(), "pr1", "pr2"
		merged, later := at(-1, 100), at(-1, 200)
		y.add(seed.Task{ID: work, Account: "acme", Repo: "web", Status: "merged", Pull: &pr, Created: at(-1, 0)},
			seed.Pull{ID: pr, Account: "acme", Repo: "web", Task: &work, State: "merged", Merged: &merged},
			seed.Task{ID: slow, Account: "acme", Repo: "web", Status: "merged", Pull: &pr2, Created: at(-1, 0)},
			seed.Pull{ID: pr2, Account: "acme", Repo: "web", Task: &slow, State: "merged", Merged: &later, Number: 2},
			seed.Task{ID: "check", Account: "acme", Repo: "web", Kind: "ci", Status: "completed", Pull: &pr, Created: at(-1, 50)},
			seed.Run{ID: "works", Account: "acme", Task: work, Repo: "web", Box: "b1"},
			seed.Run{ID: "checks", Account: "acme", Task: "check", Repo: "web", Box: "b2"},
			seed.Action{ID: "asks", Account: "acme", Pull: pr, Kind: "merge", State: "applied", Decided: &merged})
		y.do(seed.RunBegan, "works", at(-1, 10))
		y.do(seed.RunEnds, "works", at(-1, 50), "succeeded")
		y.do(seed.RunBegan, "checks", at(-1, 60))
		y.do(seed.RunEnds, "checks", at(-1, 80), "succeeded")
		y.do(seed.AskAt, "asks", at(-1, 70)) // a person is asked while checks run
		of := db.WithAccount(t.Context(), "acme")
		got, err := y.flow(of, flowIn{Days: 3, Repo: "acme/web"})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, d := range got.Days {
			fmt.Fprint(&out, d.Merged, d.Failed)
			if d.Lead != nil {
				fmt.Fprint(&out, " ", *d.Lead/60)
			}
			for _, p := range d.Parts {
				fmt.Fprint(&out, " ", p.Phase, " ", p.Seconds/60)
			}
			out.WriteString("; ")
		}
		// Two tasks: of 100 and of 200 minutes. 10 + 10 wait, 40 work, 20 check, 20 wait for a person.
		if want := "0 0; 2 0 150 queue 10 agent 20 checks 10 person 10; 0 0; "; out.String() != want {
			t.Errorf("the days are %s\nnot %s", out.String(), want)
		}
		if got.Merged != 2 || got.Half == nil || *got.Half != 6000 || *got.Most != 12000 {
			t.Errorf("%d merged, half within %v, most within %v", got.Merged, got.Half, got.Most)
		}
		if a := got.Templates; len(a) != 1 || a[0].Template != "default" || a[0].N != 1 || a[0].D != 1 || a[0].CostUSD != nil {
			t.Errorf("by template: %+v", a)
		}
		none, err := y.flow(db.WithAccount(t.Context(), "rival"), flowIn{})
		if err != nil || none.Merged != 0 || len(none.Days) != 30 || none.Half != nil || len(none.Templates) != 0 {
			t.Errorf("of another account: %+v, %v", none, err)
		}
		if _, err := y.flow(db.WithAccount(t.Context(), "rival"), flowIn{Repo: "acme/web"}); err == nil {
			t.Error("the repository of another account is told of")
		}
	})
}

// The queue is as deep as it was at its deepest in each part.
func TestDepths(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) *time.Time { return new(from.Add(time.Duration(minutes) * time.Minute)) }
	span := measure.Span{From: from, To: from.Add(queueSpan)}
	got := depths(span, []measure.Turn{
		// One waits as the span begins. The next has its slot at the moment it is free.
		{FiledAt: *at(-60), ClaimedAt: at(5), EndedAt: at(20)},
		{FiledAt: *at(3), ClaimedAt: at(20), EndedAt: at(31)},
		// One waits for another first, and one waits still.
		{FiledAt: *at(0), DependedUntil: at(40), ClaimedAt: at(42), EndedAt: at(1e6)},
		{FiledAt: *at(14), TriedUntil: at(50)},
	})
	var out strings.Builder
	for _, q := range got[:5] {
		fmt.Fprint(&out, q.Waiting, "/", q.Busy, " ")
	}
	if want := "2/1 1/1 1/1 1/1 1/1 "; out.String() != want || len(got) != 96 {
		t.Errorf("%d parts, the first are %s, not %s", len(got), out.String(), want)
	}
}

// A template is judged by its runs of work that ended by themselves in these days; what one cost
// is the mean of those that have a price.
func TestSuccessByTemplate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		day := y.now().UTC().Truncate(oneDay)
		n := 0
		try := func(template, kind, repo, outcome string, days int, micros *int64) {
			n++
			task, run := fmt.Sprint("task", n), fmt.Sprint("run", n)
			y.add(seed.Task{ID: task, Account: "acme", Repo: repo, Kind: kind, Template: template},
				seed.Run{ID: run, Account: "acme", Task: task, Repo: repo, Box: fmt.Sprint("box", n)},
				seed.Session{ID: run, Account: "acme", Repo: repo, Run: &run, Task: &task, Micros: micros})
			y.do(seed.RunEnds, run, day.Add(time.Duration(days)*oneDay).UnixMicro(), outcome)
		}
		for i := range 3 {
			try("quick", "work", "web", "succeeded", -i, new(int64(100_000*(i+1))))
		}
		try("quick", "work", "api", "failed", 0, nil)
		try("careful", "work", "web", "succeeded", 0, nil)
		try("careful", "work", "web", "lost", 0, nil)        // its box went away
		try("careful", "work", "web", "interrupted", 0, nil) // stopped from outside
		try("careful", "review", "web", "failed", 0, nil)    // no work
		try("careful", "work", "web", "failed", -3, nil)     // before these days
		for repo, want := range map[string]string{"": "quick 3/4 0.20 of 3; careful 1/1 none of 0; ",
			"acme/web": "quick 3/3 0.20 of 3; careful 1/1 none of 0; "} {
			got, err := y.flow(db.WithAccount(t.Context(), "acme"), flowIn{Days: 3, Repo: repo})
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, s := range got.Templates {
				cost := "none"
				if s.CostUSD != nil {
					cost = *s.CostUSD
				}
				fmt.Fprintf(&out, "%s %d/%d %s of %d; ", s.Template, s.N, s.D, cost, s.Priced)
				if s.Low <= 0 || s.Low >= s.High || s.High > 1 {
					t.Errorf("of %s the range is %v to %v", s.Template, s.Low, s.High)
				}
			}
			if out.String() != want {
				t.Errorf("of %q: %s\nnot %s", repo, out.String(), want)
			}
		}
	})
}
