package measure

import (
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

// A number is the same wherever it is read: as one, by repository, in a list and in a rate. The
// beginning of a span is in it, its end is not.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		span := Span{From: from, To: from.Add(24 * time.Hour)}
		at := func(d time.Duration) *int64 { n := db.Micros(from.Add(d)); return &n }
		number := 0
		rows := []seed.Row{seed.Account{ID: "acme"}, seed.Account{ID: "other"}}
		for _, r := range []string{"web", "api"} {
			rows = append(rows, seed.Repo{ID: r, Account: "acme", Owner: "acme", Name: r})
		}
		rows = append(rows, seed.Repo{ID: "far", Account: "other", Owner: "other", Name: "far"})
		for name, when := range map[string]*int64{
			"before": at(-time.Microsecond), "first": at(0), "last": at(24*time.Hour - time.Microsecond),
			"after": at(24 * time.Hour)} {
			for _, r := range []string{"web", "api", "far"} {
				number += 2
				account := map[string]string{"far": "other"}[r]
				if account == "" {
					account = "acme"
				}
				rows = append(rows,
					seed.Pull{ID: name + r + "m", Account: account, Repo: r, Number: number, State: "merged", Merged: when},
					seed.Pull{ID: name + r + "c", Account: account, Repo: r, Number: number + 1, State: "closed", Closed: when},
					seed.Task{ID: name + r + "f", Account: account, Repo: r, Status: "failed", Finished: when, Created: *when},
					seed.Task{ID: name + r + "d", Account: account, Repo: r, Status: "merged", Finished: when, Created: *when})
			}
		}
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			if err := seed.Add(tx, rows...); err != nil {
				return err
			}
			n := func(v int64, err error) int64 {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			sum := func(rows []ByRepo, err error) (all int64) {
				t.Helper()
				for _, r := range rows {
					all += r.N
				}
				return n(all, err)
			}
			for what, got := range map[string]int64{
				"merged": n(Merged(tx, span)), "merged by repository": sum(MergedByRepo(tx, span)),
				"filed by repository": sum(FiledByRepo(tx, span)) / 2,
			} {
				if got != 4 {
					t.Errorf("%s: %d, want 4", what, got)
				}
			}
			list, err := Merges(tx, span, 3)
			if err != nil || len(list) != 3 || list[0].Total != 4 {
				t.Errorf("%+v, %v", list, err)
			}
			lost, err := Failures(tx, span, 3)
			if err != nil || len(lost) != 3 || lost[0].Total != 4 {
				t.Errorf("%+v, %v", lost, err)
			}
			p, err := PullsOf(tx, "web", span)
			if err != nil || p.Merged != 2 || p.Closed != 2 {
				t.Errorf("%+v, %v", p, err)
			}
			k, err := TasksOf(tx, "web", span)
			if err != nil || k.Failed != 2 || k.Completed != 2 {
				t.Errorf("%+v, %v", k, err)
			}
			r, err := RunningTasks(tx, span)
			if err != nil || r.Failed != 4 {
				t.Errorf("%+v, %v", r, err)
			}
			for name, rate := range map[string]func(*db.Tx, Span) (Rate, error){"merges": MergeRate, "tasks": SuccessRate} {
				if r, err := rate(tx, span); err != nil || r != (Rate{4, 8}) {
					t.Errorf("%s: %+v, %v", name, r, err)
				}
			}
			agree(t, tx, span)
			if later := n(Merged(tx, Since(span.To))); later != 2 {
				t.Errorf("since the end of the span %d", later)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// agree holds that what is counted over time and by repository comes to what is counted as one.
func agree(t *testing.T, tx *db.Tx, span Span) {
	t.Helper()
	for what, want := range map[What]Rate{
		PullsMerged: {4, 4}, PullsEnded: {4, 8}, TasksFiled: {8, 8}, TasksEnded: {4, 8}, TasksFailed: {4, 4},
		ChecksEnded: {}, SessionsOfA: {}, Cost: {},
	} {
		total, err := Total(tx, what, span, "")
		if err != nil || (Rate{total.N, total.D}) != want {
			t.Errorf("%s: %+v, %v", what, total, err)
		}
		var over, by Rate
		parts, err := Series(tx, what, span, time.Hour, "")
		if err != nil || want.D > 0 && (parts[0].At != 0 || parts[len(parts)-1].At != 23) {
			t.Errorf("%s: %+v, %v", what, parts, err)
		}
		for _, p := range parts {
			over.N, over.D = over.N+p.N, over.D+p.D
		}
		shares, err := ByRepoOf(tx, what, span, "")
		if err != nil || want.D > 0 && len(shares) != 2 {
			t.Errorf("%s: %+v, %v", what, shares, err)
		}
		for _, p := range shares {
			by.N, by.D = by.N+p.N, by.D+p.D
		}
		one, err := Total(tx, what, span, "web")
		if over != want || by != want || err != nil || one.D*2 != want.D {
			t.Errorf("%s: over time %+v, by repository %+v, of one %+v, want %+v; %v", what, over, by, one, want, err)
		}
	}
}
