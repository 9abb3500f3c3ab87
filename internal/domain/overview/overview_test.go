package overview

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

// yard has the public repository acme/web, which consents to everything, and has been
// given one machine.
type yard struct {
	*Service
	t     *testing.T
	clock atomic.Int64
	pages map[string]PageAge
	boxes []BoxLoad
	asked int // how often it was asked what the repository was given
}

func (y *yard) now() time.Time { return time.UnixMicro(y.clock.Load()).UTC() }

func (y *yard) later(d time.Duration) { y.clock.Add(d.Microseconds()) }

// Received implements Donations.
func (y *yard) Received(tx *db.Tx, repoID string) (*Received, error) {
	y.asked++
	if tx.Account != "acme" || repoID != "web" {
		y.t.Errorf("asked about %s of %s", repoID, tx.Account)
	}
	return &Received{Compute: 1}, nil
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := &yard{t: t}
			y.clock.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.now})
			y.Service = New(Needs{DB: d, Donations: y, Tasks: y, Quotas: y, Boxes: y, Knowledge: y})
			y.add(seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.Repo{ID: "web", Account: "acme"},
				seed.Repo{ID: "api", Account: "acme"}, seed.User{ID: "ada"})
			y.turn(true, true)
			fn(t, y)
		})
	}
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(db.WithAccount(context.Background(), "acme"), fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) add(rows ...seed.Row) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return seed.Add(tx, rows...) })
}

func (y *yard) turn(donations, stats bool) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		_, err := seed.SetConsent.Exec(tx, "web", donations, stats)
		return err
	})
}

// Stuck implements Tasks.
func (y *yard) Stuck(*db.Tx) (int64, error) { return 7, nil }

func (y *yard) NearlyFull(*db.Tx) ([]string, error) { return []string{"repos"}, nil }

// merged is a merged pull request; days is how many days ago.
func (y *yard) merged(n int, days float64, p seed.Pull) seed.Pull {
	p.ID, p.Account, p.Repo, p.Number, p.State = fmt.Sprint("pr", n), "acme", "web", n, "merged"
	at := y.now().Add(-time.Duration(days * float64(24*time.Hour))).UnixMicro()
	p.Merged = &at
	return p
}

func (y *yard) stats() (out PublicStats) {
	y.t.Helper()
	r, err := y.public(y.t.Context(), nameIn{Owner: "acme", Repo: "web"})
	if err != nil {
		y.t.Fatal(err)
	}
	out, ok := r.Body.(PublicStats)
	if !ok {
		y.t.Fatalf("%T", r.Body)
	}
	return out
}

const sha = "3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b"

// Pull requests of agents are counted over 30 days, without those that raise a version;
// what was reverted, and what a person had approved, is counted among them.
func TestPublicStats(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		task, ada, byPolicy := "task", "user:ada", "policy"
		other := y.merged(20, 1, seed.Pull{})
		other.Repo = "api"
		y.add(
			y.merged(1, 29, seed.Pull{Title: "Fix the date", Merge: sha, Task: &task}),
			y.merged(2, 31, seed.Pull{Title: "Too old", Task: &task}),
			y.merged(3, 20, seed.Pull{Title: "Say when", Task: &task}),
			y.merged(4, 10, seed.Pull{Title: "Say when"}),
			y.merged(5, 9, seed.Pull{Title: `Revert "Say when"`, Author: "human"}),
			y.merged(6, 8, seed.Pull{Title: "Undo", Body: "This reverts commit " + sha + ".", Author: "human"}),
			y.merged(7, 8, seed.Pull{Title: "Undo it again", Body: "This reverts commit " + sha + ".", Author: "human"}),
			y.merged(8, 7, seed.Pull{Title: "chore(release): 1.2.3"}),
			y.merged(9, 7, seed.Pull{Title: "Release v1.2.3"}),
			y.merged(10, 7, seed.Pull{Title: "Anything", Head: "release-please--branches--main"}),
			y.merged(11, 6, seed.Pull{Title: "Release the hounds"}),
			y.merged(12, 2.5, seed.Pull{Title: "By hand", Author: "human"}),
			y.merged(13, 1, seed.Pull{Title: "Bump x to 2", Author: "bot"}),
			y.merged(14, 40, seed.Pull{Title: `Revert "Release the hounds"`, Author: "human"}), // before it
			other,
			seed.Pull{ID: "open", Account: "acme", Repo: "web", Number: 30},
			seed.Action{ID: "a1", Account: "acme", Pull: "pr1", Kind: "merge", State: "applied", By: &ada},
			seed.Action{ID: "a3", Account: "acme", Pull: "pr3", Kind: "merge", State: "applied", By: &byPolicy},
			seed.Action{ID: "a4", Account: "acme", Pull: "pr4", Kind: "merge", State: "skipped", By: &ada},
			seed.Action{ID: "a12", Account: "acme", Pull: "pr12", Kind: "merge", State: "applied", By: &ada},
		)
		got := y.stats()
		if a := got.AgentAuthored; a == nil || a.Merged != 4 || a.Reverted != 2 {
			t.Errorf("%+v", a)
		}
		if *got.HumanApproved != 1 || *got.HumanDays != 2 || got.Donations.Compute != 1 || got.Repo != "acme/web" {
			t.Errorf("%+v, %d approved, %d days", got, *got.HumanApproved, *got.HumanDays)
		}
	})
}

// The numbers are kept for a minute; who may see them is not.
func TestConsent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{BaseURL: "http://yard", Limits: limit.New(y.now)}}, y.Ops())
		call := func() (int, string) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v1/public/oss/acme/web/stats", nil))
			for name := range w.Header() {
				if strings.HasPrefix(strings.ToLower(name), "ratelimit") {
					t.Errorf("%s is sent", name)
				}
			}
			if c := w.Header().Get("Cache-Control"); w.Code == 200 && c != "public, max-age=60" || w.Code != 200 && c != "no-store" {
				t.Errorf("%d: Cache-Control %q", w.Code, c)
			}
			return w.Code, w.Body.String()
		}
		see := func(donations, agents bool) {
			t.Helper()
			code, text := call()
			if code != 200 || strings.Contains(text, `"donations":null`) == donations ||
				strings.Contains(text, `"agent_authored":null`) == agents || strings.Contains(text, `"human_approved_30d":null`) == agents {
				t.Errorf("%d %s", code, text)
			}
		}
		gone := func(name string) {
			t.Helper()
			if code, text := call(); code != 404 || strings.Contains(text, "merged") {
				t.Errorf("%s: %d %s", name, code, text)
			}
		}
		see(true, true)
		y.add(y.merged(1, 1, seed.Pull{}))
		if got := y.stats(); got.AgentAuthored.Merged != 0 || y.asked != 1 {
			t.Errorf("counted anew within a minute: %+v", got.AgentAuthored)
		}
		y.turn(false, true)
		see(false, true)
		y.turn(true, false)
		see(true, false)
		y.turn(false, false)
		gone("without a switch")
		y.turn(true, true)
		do := func(s db.Stmt, on bool) {
			y.write(func(tx *db.Tx) error {
				_, err := s.Exec(tx, "web", on)
				return err
			})
		}
		do(seed.SetPrivate, true)
		gone("private")
		do(seed.SetPrivate, false)
		do(seed.SetEnabled, false)
		gone("disabled")
		do(seed.SetEnabled, true)
		y.later(time.Minute)
		see(true, true)
		if got := y.stats(); got.AgentAuthored.Merged != 1 || y.asked != 2 {
			t.Errorf("not counted anew: %+v", got.AgentAuthored)
		}
		y.later(-time.Hour)
		if y.stats(); y.asked != 3 {
			t.Error("numbers from the future are answered")
		}
	})
}

// No address asks more than 60 times a minute.
func TestPublicStatsAreLimited(t *testing.T) {
	t.Parallel()
	y := &yard{t: t}
	y.clock.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	y.Service = New(Needs{DB: dbtest.SQLite(t), Donations: y, Tasks: y, Quotas: y, Boxes: y, Knowledge: y})
	h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{BaseURL: "http://yard", Limits: limit.New(y.now)}}, y.Ops())
	for i := range 61 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v1/public/oss/acme/web/stats", nil))
		if want := map[bool]int{true: 404, false: 429}[i < 60]; w.Code != want {
			t.Fatalf("call %d: %d", i+1, w.Code)
		}
	}
}

// The overview of a repository counts its own rows, of its own account, in the window.
func TestRollup(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.add(
			y.merged(1, 6, seed.Pull{}), y.merged(2, 8, seed.Pull{}),
			seed.Pull{ID: "open", Account: "acme", Repo: "web", Number: 3}, seed.Pull{ID: "other", Account: "acme", Repo: "api", Number: 3},
			seed.Action{ID: "a", Account: "acme", Pull: "open", Kind: "merge"},
			seed.Action{ID: "b", Account: "acme", Pull: "other", Kind: "merge"},
			seed.Task{ID: "t1", Account: "acme", Repo: "web", Status: "running"},
			seed.Task{ID: "t2", Account: "acme", Repo: "web", Status: "held"},
			seed.Task{ID: "t3", Account: "acme", Repo: "web", Status: "awaiting_review"},
			seed.Task{ID: "t4", Account: "acme", Repo: "api", Status: "pending"},
		)
		got, err := y.rollup(db.WithAccount(t.Context(), "acme"), nameIn{Owner: "acme", Repo: "web"})
		if err != nil {
			t.Fatal(err)
		}
		if want := (RollupPulls{Open: 1, Asked: 1, Merged: 1}); got.Pulls != want {
			t.Errorf("%+v", got.Pulls)
		}
		if want := (RollupTasks{InFlight: 1, Held: 1, Shipping: 1}); got.Tasks != want {
			t.Errorf("%+v", got.Tasks)
		}
		if _, err := y.rollup(db.WithAccount(t.Context(), "rival"), nameIn{Owner: "acme", Repo: "web"}); err == nil {
			t.Error("another account sees it")
		}
	})
}

// The counts of an account are of all its rows, and what waits for the caller is what the
// credential may decide.
func TestCounts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		hour, day := y.now().Add(-time.Hour).UnixMicro(), y.now().Add(-25*time.Hour).UnixMicro()
		y.add(
			seed.Task{ID: "old", Account: "acme", Repo: "web", Status: "failed", Finished: &day},
			seed.Task{ID: "ended", Account: "acme", Repo: "web", Status: "completed", Finished: &hour},
			seed.Task{ID: "queued", Account: "acme", Repo: "web", Status: "pending"},
			seed.Pull{ID: "open", Account: "acme", Repo: "web", Number: 3},
			seed.Action{ID: "a", Account: "acme", Pull: "open", Kind: "merge"},
			seed.Escalation{ID: "e", Account: "acme", Title: "Which one?"},
			seed.Pull{ID: "declined", Account: "acme", Repo: "web", Number: 4, Needs: "declined"},
			seed.Pull{ID: "asked", Account: "acme", Repo: "web", Number: 5, Needs: "asked"}, // its question is counted
			seed.Pull{ID: "over", Account: "acme", Repo: "web", Number: 6, State: "closed", Needs: "declined"},
			seed.Task{ID: "held", Account: "acme", Repo: "web", Status: "held", Failure: "budget_exhausted"},
		)
		for i := range 300 { // more than a page has
			y.add(
				seed.Task{ID: fmt.Sprint("run", i), Account: "acme", Repo: "web", Status: []string{"claimed", "running"}[i%2]},
				seed.Task{ID: fmt.Sprint("fail", i), Account: "acme", Repo: "api", Status: "failed", Finished: &hour},
			)
		}
		count := func(account string, a policy.Actor) Counts {
			t.Helper()
			got, err := y.counts(policy.With(db.WithAccount(t.Context(), account), a), op.None{})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		of := func(n *int64) int64 {
			if n == nil {
				return -1
			}
			return *n
		}
		everything := policy.Actor{UserID: "ada", Scopes: policy.Scopes(
			policy.ReadPRs, policy.ReadTasks, policy.WriteTasks, policy.WritePRs, policy.WriteSecrets)}
		got := count("acme", everything)
		if of(got.Running) != 300 || of(got.Failed) != 300 || of(got.Stuck) != 7 {
			t.Errorf("%d run, %d failed, %d are stuck", of(got.Running), of(got.Failed), of(got.Stuck))
		}
		if want := (Waiting{Total: 4, Approvals: 1, Escalations: 1, Pulls: 1, Tasks: 1}); got.Waiting != want {
			t.Errorf("%+v waits", got.Waiting)
		}
		machine := everything
		machine.UserID = ""
		if want := (Waiting{Total: 3, Approvals: 1, Pulls: 1, Tasks: 1}); count("acme", machine).Waiting != want {
			t.Errorf("%+v waits for a machine", count("acme", machine).Waiting)
		}
		reader := policy.Actor{UserID: "ada", Scopes: policy.Scopes(policy.ReadPRs, policy.ReadTasks)}
		if got := count("acme", reader); got.Waiting != (Waiting{}) || of(got.Running) != 300 {
			t.Errorf("%+v for a reader", got)
		}
		stranger := policy.Actor{UserID: "ada", Scopes: policy.Scopes(policy.ReadPRs)}
		if got := count("acme", stranger); got.Running != nil || got.Failed != nil || got.Stuck != nil || got.Approvals != 1 {
			t.Errorf("%+v without read:tasks", got)
		}
		if got := count("rival", everything); of(got.Running) != 0 || of(got.Failed) != 0 || got.Waiting != (Waiting{}) {
			t.Errorf("%+v of another account", got)
		}
	})
}

// What happened within a day is told by repository, as far as the credential may see it.
func TestDay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		micros, minute := int64(2_500_000), y.now().Add(-time.Hour).UnixMicro()
		y.add(
			y.merged(1, 0.5, seed.Pull{}), y.merged(2, 0.9, seed.Pull{}), y.merged(3, 1.1, seed.Pull{}),
			seed.Task{ID: "old", Account: "acme", Repo: "api"}, // of 1970
			seed.Task{ID: "new", Account: "acme", Repo: "web", Created: minute},
			seed.Task{ID: "its review", Account: "acme", Repo: "web", Kind: "review", Created: minute},
			seed.Session{ID: "s", Account: "acme", Repo: "web"},
			seed.Spend{Account: "acme", Session: "s", Minute: minute, Calls: 1, Micros: &micros},
			seed.Spend{Account: "acme", Session: "s", Minute: minute - (25 * time.Hour).Microseconds(), Calls: 1, Micros: &micros},
		)
		day := func(account string, scopes ...policy.Scope) string {
			t.Helper()
			got, err := y.day(policy.With(db.WithAccount(t.Context(), account), policy.Actor{Scopes: policy.Scopes(scopes...)}), op.None{})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, r := range got.Repos {
				filed, spent := "-", "-"
				if r.Filed != nil {
					filed = fmt.Sprint(*r.Filed)
				}
				if r.Spent != nil {
					spent = *r.Spent
				}
				lines = append(lines, fmt.Sprint(r.Repo, " ", r.Merged, " ", filed, " ", spent))
			}
			return strings.Join(lines, "; ")
		}
		if got, want := day("acme", policy.ReadPRs, policy.ReadTasks, policy.ReadSessions), "acme/web 2 1 2.50"; got != want {
			t.Errorf("%s, not %s", got, want)
		}
		if got, want := day("acme", policy.ReadPRs), "acme/web 2 - -"; got != want {
			t.Errorf("%s, not %s, without other scopes", got, want)
		}
		if got := day("rival", policy.ReadPRs, policy.ReadTasks, policy.ReadSessions); got != "" {
			t.Errorf("%s of another account", got)
		}
	})
}
