package overview

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
)

// The time of a task has its tries with their waits and costs, the checks and reviews of its pull
// request, and the people who were asked; other tasks, and other accounts, have no part in it.
func TestTimeline(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		work, cost := id.New(), int64(420_000)
		minute := func(n int) int64 { return y.now().Add(time.Duration(n-60) * time.Minute).UnixMicro() }
		pr := "pr1"
		tries := func(task, run string, began, ended int, outcome string) {
			y.add(seed.Run{ID: run, Account: "acme", Task: task, Repo: "web", Box: "box-" + run})
			y.do(seed.RunBegan, run, minute(began))
			if outcome != "" {
				y.do(seed.RunEnds, run, minute(ended), outcome)
			}
		}
		y.add(seed.Task{ID: work, Account: "acme", Repo: "web", Status: "awaiting_review", Pull: &pr, Created: minute(0)},
			seed.Pull{ID: pr, Account: "acme", Repo: "web", Task: &work},
			seed.Task{ID: "check", Account: "acme", Repo: "web", Kind: "ci", Status: "completed", Pull: &pr, Created: minute(30)},
			seed.Task{ID: "other", Account: "acme", Repo: "web", Status: "completed", Created: minute(1)})
		tries(work, "first", 2, 10, "lost")
		y.do(seed.RunLost, "first", "box_lost")
		tries(work, "second", 12, 30, "succeeded")
		tries("check", "checks", 31, 34, "succeeded")
		tries("other", "others", 3, 4, "succeeded")
		run := "second"
		y.add(seed.Session{ID: "s", Account: "acme", Repo: "web", Run: &run, Task: &work, Micros: &cost},
			seed.Action{ID: "asks", Account: "acme", Pull: pr, Kind: "merge"})
		y.do(seed.AskAt, "asks", minute(34))

		got, err := y.timeline(db.WithAccount(t.Context(), "acme"), timelineIn{ID: work})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, p := range got.Phases {
			at := func(x time.Time) int { return int(x.Sub(got.FiledAt) / time.Minute) }
			end, cause, usd := "on", "-", "-"
			if p.EndedAt != nil {
				end = fmt.Sprint(at(*p.EndedAt))
			}
			if p.Cause != nil {
				cause = *p.Cause
			}
			if p.CostUSD != nil {
				usd = *p.CostUSD
			}
			fmt.Fprintln(&out, p.Phase, at(p.BeganAt), end, cause, usd)
		}
		want := "queue 0 2 - -\nprepare 2 2 - -\nagent 2 10 - -\nqueue 10 12 box_lost -\nprepare 12 12 box_lost -\nagent 12 30 box_lost 0.42\n" +
			"queue 30 31 - -\nprepare 31 31 - -\nchecks 31 34 - -\nperson 34 on approval -\n"
		if out.String() != want {
			t.Errorf("the phases are\n%swant\n%s", out.String(), want)
		}
		parts := fmt.Sprint(got.Parts)
		if parts = strings.ReplaceAll(parts, "{{} ", "{"); parts != "[{queue 300} {prepare 0} {agent 1560} {checks 180} {person 1560}]" || got.Lead != 3600 {
			t.Errorf("the parts are %s of %d s", parts, got.Lead)
		}
		for _, wrong := range []string{"nonsense", id.New()} {
			if _, err := y.timeline(db.WithAccount(t.Context(), "acme"), timelineIn{ID: wrong}); !errors.Is(err, fault.Missing("task")) {
				t.Errorf("of %s: %v", wrong, err)
			}
		}
		if _, err := y.timeline(db.WithAccount(t.Context(), "rival"), timelineIn{ID: work}); !errors.Is(err, fault.Missing("task")) {
			t.Errorf("of another account: %v", err)
		}
	})
}
