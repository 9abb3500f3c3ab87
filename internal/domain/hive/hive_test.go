package hive

import (
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

var monday = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func onBoth(t *testing.T, fn func(*testing.T, *Service)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return monday }})
			fn(t, New(Needs{DB: d, Version: "1.0"}))
		})
	}
}

func (s *Service) write(t *testing.T, fn func(*db.Tx) error) {
	t.Helper()
	if err := s.DB.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func (s *Service) look(t *testing.T, days int) Hive {
	t.Helper()
	operator := policy.Actor{UserID: "ada", Scopes: policy.Scopes(policy.AdminReadPlat)}
	out, err := s.hive(policy.With(t.Context(), operator), hiveIn{Days: days})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (h Hive) metric(t *testing.T, lane, name string) Metric {
	t.Helper()
	for _, l := range h.Lanes {
		if i := slices.IndexFunc(l.Metrics, func(m Metric) bool { return string(m.Metric) == name }); string(l.Lane) == lane && i >= 0 {
			return l.Metrics[i]
		}
	}
	t.Fatalf("%s of %s is not among %+v", name, lane, h.Lanes)
	return Metric{}
}

// What a lane says is added up; a task that ends again replaces what was said of it; a metric that
// is not the lane's has no counts.
func TestReportsAreAddedUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service) {
		s.write(t, func(tx *db.Tx) error {
			for task, well := range map[string]bool{"a": true, "b": true, "c": false} {
				for _, so := range []bool{!well, well} {
					if err := s.Note(tx, Report{TaskID: task, Lane: Scouts, Metrics: map[string]Count{
						Delivered: Yes(so), FirstTry: Yes(so), Grounded: {N: 2, D: 4},
					}}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		h := s.look(t, 0)
		for name, want := range map[string]Metric{Delivered: {Status: "warn", N: new(int64(2)), D: new(int64(3))},
			Grounded: {Status: "bad", N: new(int64(6)), D: new(int64(12))}} {
			if got := h.metric(t, Scouts, name); got.Status != want.Status || *got.N != *want.N || *got.D != *want.D {
				t.Errorf("%s: %s, %d of %d", name, got.Status, *got.N, *got.D)
			}
		}
		if m := h.metric(t, Scouts, Merged); m.Status != "not_on_contract" || m.N != nil || m.D != nil {
			t.Errorf("%+v", m)
		}
		if m := h.metric(t, Plans, Merged); m.Status != "no_data" || *m.D != 0 || len(h.Unparseable) != 0 {
			t.Errorf("%+v", h)
		}
	})
}

// A report that lacks what is asked now counts nowhere: it is shown with what it lacks and when the
// newest such one was written. One before the window is not looked at.
func TestOlderPrograms(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service) {
		at := func(hours int) int64 { return monday.Add(-time.Duration(hours) * time.Hour).UnixMicro() }
		s.write(t, func(tx *db.Tx) error {
			for i, metrics := range []string{
				`{"delivered":{"n":1,"d":1},"first_try":{"n":1,"d":1}}`, `{"delivered":{"n":0,"d":1},"first_try":{"n":1,"d":1},"grounded":7}`,
				`{"delivered":{"n":2,"d":1},"first_try":{"n":1},"grounded":{"n":0,"d":0}}`, `no JSON`,
			} {
				if _, err := seed.LaneSays.Exec(tx, string(rune('a'+i)), at(i+1), metrics); err != nil {
					return err
				}
			}
			_, err := seed.LaneSays.Exec(tx, "old", at(200), `{}`)
			return err
		})
		h := s.look(t, 7)
		if h.Lanes[0].Reports != 0 || *h.metric(t, Scouts, Delivered).D != 0 || len(h.Unparseable) != 3 {
			t.Fatalf("%+v", h)
		}
		for i, want := range []Unparseable{
			{Rows: 2, Unsatisfied: []string{Grounded}, LastWritten: monday.Add(-time.Hour)},
			{Rows: 1, Unsatisfied: []string{Delivered, FirstTry}, LastWritten: monday.Add(-3 * time.Hour)},
			{Rows: 1, Unsatisfied: carried(Scouts), LastWritten: monday.Add(-4 * time.Hour)},
		} {
			got := h.Unparseable[i]
			if got.Rows != want.Rows || !slices.Equal(got.Unsatisfied, want.Unsatisfied) || !got.LastWritten.Equal(want.LastWritten) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		s.write(t, func(tx *db.Tx) error { return s.Note(tx, Report{TaskID: "new", Lane: "unheard", Metrics: nil}) })
		if u := s.look(t, 7).Unparseable[0]; u.Lane != "unheard" || !slices.Equal(u.Unsatisfied, []string{"lane"}) {
			t.Errorf("%+v", u)
		}
	})
}
