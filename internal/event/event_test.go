package event_test

import (
	"errors"
	"testing"

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

// TestRecord holds that a change's audit row, and the notice of it, come with
// the change's transaction and go with it.
func TestRecord(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		hub := event.NewHub(nil)
		ctx := policy.With(db.WithAccount(t.Context(), "acct"), policy.Actor{Credential: policy.PAT, UserID: "u1", RequestID: "r1"})
		news := hub.Watch("run:1")
		stop := errors.New("stop")
		change := func(fail error) error {
			return d.Write(ctx, func(tx *db.Tx) error {
				hub.Notify(tx, event.RunTopic("1"))
				if err := event.Record(tx, event.Change{Kind: "run.ended", Object: "1", Data: map[string]int{"n": 1}}); err != nil {
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
			return event.Record(tx, event.Change{Kind: "sweep.done", Object: "x"})
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
		if r := rows[0]; r.Kind != "run.ended" || r.Actor != "user:u1" || r.RequestID != "r1" || r.Data != `{"n":1}` || r.AccountID == nil || *r.AccountID != "acct" {
			t.Errorf("row %+v", r)
		}
		if r := rows[1]; r.Actor != "system" || r.AccountID != nil {
			t.Errorf("row %+v", r)
		}
	})
}

func TestHub(t *testing.T) {
	var relayed []string
	hub := event.NewHub(func(topics []string) { relayed = append(relayed, topics...) })
	a, again, b := hub.Watch("a"), hub.Watch("a"), hub.Watch("b")
	hub.Hear("a", "nobody")
	if !closed(a) || !closed(again) || closed(b) {
		t.Error("the wrong ones were woken")
	}
	if closed(hub.Watch("a")) {
		t.Error("an old notice wakes a new watcher")
	}
	if relayed != nil {
		t.Error("what came from elsewhere was sent on")
	}
}
