package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

// yard is two nodes with schedules on one database. Asks are filed as they are in the
// program; repositories and whether asks are done are told by the test.
type yard struct {
	t     *testing.T
	mu    sync.Mutex
	at    time.Time
	nodes [2]*Service
	repo  Repo
	busy  bool
	fail  error // of the next filing, after it was made
}

func (y *yard) now() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.at
}

func (y *yard) set(text string) {
	y.t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		y.t.Fatal(err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.at = at
}

func (y *yard) ByName(*db.Tx, string, string) (Repo, bool, error) { return y.repo, true, nil }
func (y *yard) ByID(*db.Tx, string) (Repo, bool, error)           { return y.repo, true, nil }
func (y *yard) Busy(*db.Tx, string) (bool, error)                 { return y.busy, nil }

func (y *yard) File(tx *db.Tx, f Filing) (string, error) {
	a, _, err := ask.File(tx, ask.Filing{
		RepoIDs: []string{f.RepoID}, Title: f.Title, Body: f.Body, Labels: f.Labels, Source: ask.FromSchedule, DedupeKey: f.Key,
		By: f.By, UserID: f.UserID, Scopes: f.Scopes,
	})
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.fail != nil { // each time: a transaction may run again with those that share its commit
		err = y.fail
	}
	return a.ID, err
}

func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	y := &yard{}
	dbtest.RunWith(t, db.Options{Clock: y.now}, func(t *testing.T, d *db.DB) {
		y.t, y.repo, y.busy, y.fail = t, Repo{ID: "web", Name: "acme/web", Enabled: true}, false, nil
		y.set("2026-03-02T12:00:00Z")
		for i := range y.nodes {
			y.nodes[i] = New(Needs{DB: d, Due: duetest.New(d, event.NewHub()), Logger: slog.New(slog.DiscardHandler), Repos: y, Asks: y})
		}
		y.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.User{ID: "ada"}, seed.User{ID: "bob"},
				seed.Member{Account: "acme", User: "ada", Role: "member"}, seed.Member{Account: "acme", User: "bob", Role: "member"},
				seed.Repo{ID: "web", Account: "acme"})
		})
		fn(y)
	})
}

// as is a context of a person in acme.
func (y *yard) as(user string) context.Context {
	ctx := policy.With(y.t.Context(), policy.Actor{
		Credential: policy.PAT, CredentialID: "x", UserID: user, Scopes: policy.Scopes(policy.ReadTasks, policy.WriteTasks),
	})
	return db.WithAccount(ctx, "acme")
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.nodes[0].DB.Write(db.WithAccount(y.t.Context(), "acme"), fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) make(cron, zone string, whenBusy WhenBusy) Schedule {
	y.t.Helper()
	s, err := y.nodes[0].create(y.as("ada"), createIn{Repo: "acme/web", Title: "t", Body: "b", Cron: cron, Zone: zone, WhenBusy: whenBusy})
	if err != nil {
		y.t.Fatal(err)
	}
	return s
}

// pass has both nodes look at once.
func (y *yard) pass() {
	y.t.Helper()
	duetest.Pass(y.t.Context(), y.t, y.nodes[0].Due, y.nodes[1].Due)
}

func (y *yard) get(id string) Schedule {
	y.t.Helper()
	s, err := y.nodes[1].get(y.as("bob"), idIn{id})
	if err != nil {
		y.t.Fatal(err)
	}
	return s
}

var keys = db.Q[struct {
	DedupeKey, FiledBy, RequestedBy string
	Scopes                          db.JSON[[]string]
}](`SELECT dedupe_key, filed_by, requested_by, scopes FROM asks WHERE source = 'schedule' ORDER BY created_at, id`)

// asks are the occurrences that were filed, in their order.
func (y *yard) asks() (out []string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		rows, err := keys.All(tx)
		out = nil
		for _, r := range rows {
			out = append(out, r.DedupeKey[37:])
		}
		return err
	})
	return out
}

var recorded = db.Q[string](`SELECT kind FROM audit WHERE kind LIKE 'schedule.%' ORDER BY seq`)

func (y *yard) records() (out []string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) { out, err = recorded.All(tx); return err })
	return out
}

func (y *yard) want(id, outcome, next string, asks ...string) Schedule {
	y.t.Helper()
	s := y.get(id)
	got, at := "", ""
	if s.LastOutcome != nil {
		got = string(*s.LastOutcome)
	}
	if s.NextAt != nil {
		at = s.NextAt.Format(time.RFC3339)
	}
	if got != outcome || at != next {
		y.t.Errorf("at %s: %q, next at %q, want %q and %q", y.now().Format(time.RFC3339), got, at, outcome, next)
	}
	if filed := y.asks(); !slices.Equal(filed, asks) {
		y.t.Errorf("at %s: filed %v, want %v", y.now().Format(time.RFC3339), filed, asks)
	}
	return s
}

// An occurrence is filed once, on whichever of two nodes, and the next one after it.
func TestOccurrences(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		s := y.make("0 8 * * *", "Europe/Berlin", "")
		y.set("2026-03-03T06:59:59Z")
		y.pass()
		y.want(s.ID, "", "2026-03-03T07:00:00Z")
		y.set("2026-03-03T07:00:09Z")
		y.pass()
		y.pass()
		got := y.want(s.ID, Filed, "2026-03-04T07:00:00Z", "2026-03-03T07:00:00Z")
		if got.LastAt.Format(time.RFC3339) != "2026-03-03T07:00:00Z" || got.LastAskID == nil {
			t.Errorf("%+v", got)
		}
		y.write(func(tx *db.Tx) error {
			r, err := keys.One(tx)
			if r.FiledBy != "schedule:"+s.ID || r.RequestedBy != "ada" || !slices.Equal(r.Scopes.V, []string{"read:tasks", "write:tasks"}) {
				t.Errorf("%+v", r)
			}
			return err
		})
		if got := y.records(); !slices.Equal(got, []string{"schedule.created", "schedule.filed"}) {
			t.Errorf("%v", got)
		}
	})
}

// Many schedules are due at one instant, and two nodes file each once.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		for range most {
			y.make("0 8 * * *", "", "")
		}
		_, err := y.nodes[0].create(y.as("ada"), createIn{Title: "t", Body: "b", Cron: "0 8 * * *"})
		if fault.From(err).Slug != "too-many-schedules" {
			t.Errorf("%v", err)
		}
		y.set("2026-03-03T08:00:00Z")
		y.pass()
		if got := y.asks(); len(got) != most {
			t.Errorf("%d asks of %d schedules", len(got), most)
		}
	})
}

// A server that was off all night files nothing afterwards that is late, and says so; one
// occurrence that is not yet late is filed.
func TestStandstill(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		s := y.make("*/30 * * * *", "", "")
		y.set("2026-03-03T07:31:01Z")
		y.pass()
		got := y.want(s.ID, Late, "2026-03-03T08:00:00Z")
		if got.LastAt.Format(time.RFC3339) != "2026-03-02T12:30:00Z" {
			t.Errorf("skipped %s", got.LastAt)
		}
		y.set("2026-03-03T09:01:00Z")
		y.pass()
		y.want(s.ID, Filed, "2026-03-03T09:30:00Z", "2026-03-03T09:00:00Z")
		y.set("2026-03-03T10:31:00.5Z")
		y.pass()
		y.want(s.ID, Late, "2026-03-03T11:00:00Z", "2026-03-03T09:00:00Z")
		if got := y.records(); !slices.Equal(got[1:], []string{"schedule.skipped", "schedule.filed", "schedule.skipped"}) {
			t.Errorf("%v", got)
		}
	})
}

// A node that dies while it files has filed nothing; the occurrence is filed by the next.
func TestKilledBetween(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		s := y.make("0 8 * * *", "", "")
		y.set("2026-03-03T08:00:01Z")
		y.fail = errors.New("killed")
		duetest.Pass(y.t.Context(), y.t, y.nodes[0].Due)
		y.want(s.ID, "", "2026-03-03T08:00:00Z")
		y.fail = nil
		y.set("2026-03-03T08:00:14Z")
		duetest.Pass(y.t.Context(), y.t, y.nodes[1].Due)
		y.want(s.ID, Filed, "2026-03-04T08:00:00Z", "2026-03-03T08:00:00Z")
	})
}

// Where a clock is set back, what comes again is not filed twice, and what is due is not
// put off.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		s := y.make("0 8 * * *", "", "")
		y.set("2026-03-03T08:00:01Z")
		y.pass()
		y.set("2026-03-02T20:00:00Z")
		y.write(y.nodes[0].ClockSetBack)
		y.want(s.ID, Filed, "2026-03-03T08:00:00Z", "2026-03-03T08:00:00Z")
		y.set("2026-03-03T08:00:01Z")
		y.pass()
		y.want(s.ID, Filed, "2026-03-04T08:00:00Z", "2026-03-03T08:00:00Z")
	})
}

// While the last ask is not done, a schedule files another one, or skips, as it was told.
func TestBusy(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.set("2026-03-02T12:45:00Z")
		skips, queues := y.make("0 * * * *", "", Skip), y.make("30 * * * *", "", Queue)
		for _, at := range []string{"13:00:00", "13:30:00"} {
			y.set("2026-03-02T" + at + "Z")
			y.pass()
		}
		y.busy = true
		for _, at := range []string{"14:00:00", "14:30:00", "15:00:00"} {
			y.set("2026-03-02T" + at + "Z")
			y.pass()
		}
		y.want(queues.ID, Filed, "2026-03-02T15:30:00Z", "2026-03-02T13:00:00Z", "2026-03-02T13:30:00Z", "2026-03-02T14:30:00Z")
		if got := y.get(skips.ID); *got.LastOutcome != Busy || got.LastAskID == nil {
			t.Errorf("%+v", got)
		}
		n := 0
		for _, kind := range y.records() {
			if kind == "schedule.skipped" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d records of two skips for one reason", n)
		}
		y.busy = false
		y.set("2026-03-02T16:00:00Z")
		duetest.Pass(y.t.Context(), y.t, y.nodes[0].Due)
		if got := y.get(skips.ID); *got.LastOutcome != Filed {
			t.Errorf("%+v", got)
		}
	})
}

// A repository that is disabled or gone keeps its schedules from filing, and they say so.
func TestRepositories(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		s := y.make("0 * * * *", "", "")
		for i, c := range []struct {
			repo Repo
			want string
		}{
			{Repo{ID: "web", Name: "acme/web"}, RepoDisabled},
			{Repo{ID: "web", Name: "acme/web", Gone: true}, RepoGone},
		} {
			y.repo = c.repo
			if got := y.get(s.ID); got.Obstacle == nil || string(*got.Obstacle) != c.want || got.State != Active {
				t.Errorf("%+v, want the obstacle %s", got, c.want)
			}
			y.set(fmt.Sprintf("2026-03-02T%d:00:00Z", 13+i))
			y.pass()
			y.want(s.ID, c.want, fmt.Sprintf("2026-03-02T%d:00:00Z", 14+i))
			if _, err := y.nodes[0].runNow(y.as("bob"), idIn{s.ID}); fault.From(err).Slug != "repo_disabled" {
				t.Errorf("%v", err)
			}
		}
		y.repo = Repo{ID: "web", Name: "acme/web", Enabled: true}
		y.set("2026-03-02T15:00:00Z")
		y.pass()
		y.want(s.ID, Filed, "2026-03-02T16:00:00Z", "2026-03-02T15:00:00Z")
	})
}

// The schedule of somebody who has left, or who may file no asks any more, stops until
// somebody takes it over.
func TestPersonLeft(t *testing.T) {
	t.Parallel()
	leave := map[string]func(*db.Tx) error{
		"removed": func(tx *db.Tx) error { return people.Remove(tx, "acme", "ada") },
		"suspended": func(tx *db.Tx) error {
			_, err := people.Suspend(tx, "ada")
			return err
		},
		"viewer": func(tx *db.Tx) error { return people.SetRole(tx, "acme", "ada", policy.Viewer) },
	}
	for how, do := range leave {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(y *yard) {
				s := y.make("0 * * * *", "", "")
				y.write(do)
				if got := y.get(s.ID); got.Obstacle == nil || *got.Obstacle != PersonLeft {
					t.Errorf("%+v", got)
				}
				y.set("2026-03-02T13:00:00Z")
				y.pass()
				if got := y.want(s.ID, PersonLeft, ""); got.State != Paused {
					t.Errorf("%+v", got)
				}
				y.set("2026-03-02T14:00:00Z")
				y.pass()
				no := false
				got, err := y.nodes[0].update(y.as("bob"), updateIn{ID: s.ID, Paused: &no})
				if err != nil || got.RequestedBy != "bob" || got.State != Active || got.Obstacle != nil {
					t.Fatalf("%+v (%v)", got, err)
				}
				y.set("2026-03-02T15:00:00Z")
				y.pass()
				y.want(s.ID, Filed, "2026-03-02T16:00:00Z", "2026-03-02T15:00:00Z")
			})
		})
	}
}

// Whoever changes a schedule is the person for whom it files; who pauses it is not.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		s := y.make("0 * * * *", "", "")
		yes, no, words := true, false, "others"
		got, err := y.nodes[0].update(y.as("bob"), updateIn{ID: s.ID, Paused: &yes})
		if err != nil || got.RequestedBy != "ada" || got.State != Paused || got.NextAt != nil {
			t.Errorf("%+v (%v)", got, err)
		}
		y.set("2026-03-02T13:00:00Z")
		y.pass()
		y.want(s.ID, "", "")
		if got, err = y.nodes[0].update(y.as("ada"), updateIn{ID: s.ID, Paused: &no}); err != nil || got.NextAt == nil ||
			got.NextAt.Format(time.RFC3339) != "2026-03-02T14:00:00Z" {
			t.Errorf("%+v (%v)", got, err)
		}
		if got, err = y.nodes[0].update(y.as("bob"), updateIn{ID: s.ID, Body: &words}); err != nil || got.RequestedBy != "bob" {
			t.Errorf("%+v (%v)", got, err)
		}
		for _, bad := range []string{"0 0 30 2 *", "* * * * *", "@daily"} {
			if _, err := y.nodes[0].update(y.as("bob"), updateIn{ID: s.ID, Cron: &bad}); err == nil {
				t.Errorf("%s is taken", bad)
			}
		}
	})
}

// What is asked for by hand moves no occurrence, and is filed as often as it is asked for.
func TestRunNow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		s := y.make("0 * * * *", "", "")
		a, err := y.nodes[0].runNow(y.as("bob"), idIn{s.ID})
		if err != nil {
			t.Fatal(err)
		}
		b, err := y.nodes[0].runNow(y.as("bob"), idIn{s.ID})
		if err != nil || a.AskID == b.AskID {
			t.Errorf("%+v %+v (%v)", a, b, err)
		}
		got := y.get(s.ID)
		if *got.LastAskID != b.AskID || got.NextAt.Format(time.RFC3339) != "2026-03-02T13:00:00Z" || got.RequestedBy != "ada" {
			t.Errorf("%+v", got)
		}
		y.write(func(tx *db.Tx) error {
			rows, err := keys.All(tx)
			for _, r := range rows {
				if r.RequestedBy != "bob" {
					t.Errorf("filed for %s", r.RequestedBy)
				}
			}
			return err
		})
	})
}
