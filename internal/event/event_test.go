package event_test

import (
	"errors"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

type auditRow struct {
	Kind, Actor, Object, RequestID, Data string
	AccountID                            *string
}

var trail = db.Q[auditRow](`SELECT kind, actor, object, request_id, data, account_id FROM audit ORDER BY id`)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestRecord holds that the audit row of a change, and its notice, are committed with
// the transaction of the change or not at all.
func TestRecord(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		hub := event.NewHub()
		ctx := policy.With(db.WithAccount(t.Context(), "acct"), policy.Actor{Credential: policy.PAT, UserID: "u1", RequestID: "r1"})
		news := hub.Watch("run:1")
		stop := errors.New("stop")
		change := func(fail error) error {
			return d.Write(ctx, func(tx *db.Tx) error {
				hub.Notify(tx, event.RunTopic("1"))
				if err := unsorted.Record(tx, event.Subject{ID: "1"}, unsortedData{Z: 1, A: 2}); err != nil {
					return err
				}
				return fail
			})
		}
		if err := change(stop); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if closed(news) {
			t.Error("a change that was rolled back woke somebody")
		}
		if err := change(nil); err != nil {
			t.Fatal(err)
		}
		if !closed(news) {
			t.Error("nobody was woken")
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return undone.Record(tx, event.Subject{ID: "x"}, event.None{})
		}); err != nil {
			t.Fatal(err)
		}
		var rows []auditRow
		if err := d.Read(ctx, func(tx *db.Tx) (err error) {
			rows, err = trail.All(tx)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2 {
			t.Fatalf("%d rows: %+v", len(rows), rows)
		}
		if r := rows[0]; r.Kind != "thing.unsorted" || r.Actor != "user:u1" || r.RequestID != "r1" || r.Data != `{"A":2,"Z":1}` ||
			r.AccountID == nil || *r.AccountID != "acct" {
			t.Errorf("row %+v", r)
		}
		if r := rows[1]; r.Actor != "system" || r.AccountID != nil {
			t.Errorf("row %+v", r)
		}
	})
}

func TestHub(t *testing.T) {
	hub := event.NewHub()
	a, again, b := hub.Watch("a"), hub.Watch("a"), hub.Watch("b")
	hub.Wake("a", "nobody")
	if !closed(a) || !closed(again) || closed(b) {
		t.Error("the wrong ones were woken")
	}
	if closed(hub.Watch("a")) {
		t.Error("an old notice wakes a new watcher")
	}
}

// TestHubForgets holds that topics without changes are forgotten, and that their
// waiters are woken and may wait anew.
func TestHubForgets(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	d, err := db.Open(t.Context(), dbtest.DSN(t, db.SQLite), db.Options{Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	hub := event.NewHub()
	pass := func(by time.Duration) {
		now = now.Add(by)
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			hub.Notify(tx, "other")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	pass(0)
	quiet := hub.Watch("quiet")
	pass(9 * time.Minute)
	if closed(quiet) {
		t.Error("woken early")
	}
	pass(time.Minute)
	if hub.Watch("quiet") != quiet || closed(quiet) {
		t.Error("one who has just come was woken")
	}
	if n := event.Topics(hub); n != 1 {
		t.Errorf("%d topics are kept", n)
	}
	pass(10 * time.Minute)
	if !closed(quiet) || event.Topics(hub) != 0 {
		t.Errorf("a topic without news is kept: %d", event.Topics(hub))
	}
	quiet = hub.Watch("quiet")
	hub.Wake("quiet")
	if !closed(quiet) {
		t.Error("watched anew, the news went missing")
	}
}
