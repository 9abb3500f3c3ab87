package event_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

type doneData struct {
	N     int    `json:"n"`
	Whole func() `json:"-"` // for subscribers
}

type unsortedData struct{ Z, A int }

var (
	things   = &event.Topic{Name: "things", Scope: policy.ReadTasks}
	done     = event.Declare[doneData]("thing.ready", things, "A thing is ready.")
	undone   = event.Declare[event.None]("thing.undone", things, "A thing is ready no more.")
	unsorted = event.Declare[unsortedData]("thing.unsorted", things, "Its members do not stand in the order of their names.")
	flipped  = event.DeclareSignal[string]("thing.flipped", "A thing was flipped.")
)

// read collects what consumers have handled, once it is committed.
type read struct {
	mu  sync.Mutex
	ns  map[string][]int // by account, in the order in which they were handled
	at  map[string][]int64
	all chan struct{} // closed when want events were handled
	n   int
}

// add notes that the event n at the position at of an account was handled. Notes need
// not come in the order of the commits.
func (r *read) add(account string, at int64, n, want int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearch(r.at[account], at+1)
	r.at[account] = slices.Insert(r.at[account], i, at)
	r.ns[account] = slices.Insert(r.ns[account], i, n)
	if r.n++; r.n == want {
		close(r.all)
	}
}

func record(t *testing.T, d *db.DB, account string, fn func(*db.Tx) error) {
	t.Helper()
	if err := d.Write(db.WithAccount(t.Context(), account), fn); err != nil {
		t.Error(err)
	}
}

// TestReaders holds that events are handled once each and in order, by any of
// several nodes, while handlers fail and others write.
func TestReaders(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		const each = 60
		accounts := []string{"a", "b", "c"}
		got := &read{ns: map[string][]int{}, at: map[string][]int64{}, all: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var fails sync.Map
		var turns atomic.Int64
		var nodes sync.WaitGroup
		defer nodes.Wait()
		defer cancel()
		for range 3 {
			rs := event.NewReaders(d, slog.New(slog.DiscardHandler), []event.Consumer{{
				Name: "test", Kinds: []event.Any{done},
				Handle: func(tx *db.Tx, e event.Recorded) error {
					data, err := done.Decode(e)
					if err != nil {
						return err
					}
					if tx.Account != e.AccountID || e.Object != fmt.Sprint(data.N) {
						return fmt.Errorf("%+v in a transaction of %q", e, tx.Account)
					}
					if _, failed := fails.LoadOrStore(e.ID, true); !failed && data.N == 20 {
						return errors.New("not yet")
					}
					at := turns.Add(1)
					tx.AfterCommit(func() { got.add(tx.Account, at, data.N, each*len(accounts)) })
					return nil
				},
			}})
			if err := rs.Begin(ctx); err != nil {
				t.Fatal(err)
			}
			nodes.Go(func() {
				if err := rs.Loop(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		var writers sync.WaitGroup
		for _, account := range accounts {
			writers.Go(func() {
				for n := range each {
					record(t, d, account, func(tx *db.Tx) error {
						if err := undone.Record(tx, event.Subject{ID: "x"}, event.None{}); err != nil {
							return err
						}
						return done.Record(tx, event.Subject{ID: fmt.Sprint(n)}, doneData{N: n})
					})
				}
			})
		}
		writers.Wait()
		select {
		case <-got.all:
		case <-patience.Over(t): // what is missing is said below
		}
		cancel()
		nodes.Wait()
		for _, account := range accounts {
			if ns := got.ns[account]; len(ns) != each || !slices.IsSorted(ns) {
				t.Errorf("%s: %d of %d events, %v", account, len(ns), each, ns)
			}
		}
	})
}

// TestReaderThatIsNew holds that a new consumer begins with the events after its
// beginning, and that it reads all events of a later account, without a notice.
func TestReaderThatIsNew(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		say := func(account string, n int) {
			record(t, d, account, func(tx *db.Tx) error { return done.Record(tx, event.Subject{ID: fmt.Sprint(n)}, doneData{N: n}) })
		}
		say("old", 1)
		got := &read{ns: map[string][]int{}, at: map[string][]int64{}, all: make(chan struct{})}
		consumers := []event.Consumer{{Name: "test", Kinds: []event.Any{done}, Handle: func(tx *db.Tx, e event.Recorded) error {
			data, err := done.Decode(e)
			tx.AfterCommit(func() { got.add(tx.Account, 0, data.N, 3) })
			return err
		}}}
		rs := event.NewReaders(d, slog.New(slog.DiscardHandler), consumers)
		if err := rs.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		say("old", 2)
		say("new", 3)
		say("new", 4)
		// This node was not running when the event was recorded.
		rs = event.NewReaders(d, slog.New(slog.DiscardHandler), consumers)
		ctx, cancel := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { _ = rs.Loop(ctx) })
		select {
		case <-got.all:
		case <-patience.Over(t): // what is missing is said below
		}
		cancel()
		loop.Wait()
		if !slices.Equal(got.ns["old"], []int{2}) || !slices.Equal(got.ns["new"], []int{3, 4}) {
			t.Errorf("read %v", got.ns)
		}
	})
}

// TestSubscribers holds that subscribers run for events and signals inside the
// transaction, in the order of their subscriptions, that their error undoes it, and
// that two programs in one process are separate.
func TestSubscribers(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		other, err := db.Open(t.Context(), dbtest.DSN(t, db.SQLite), db.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		var heard []string
		for _, who := range []string{"first", "second"} {
			done.On(d, func(_ *db.Tx, e event.Event[doneData]) error {
				heard = append(heard, fmt.Sprint(who, " ", e.Kind, " ", e.Subject.ID, " ", e.Subject.Account, " ", e.Data.Whole != nil))
				if e.Data.N < 0 {
					return errors.New("negative")
				}
				return nil
			})
		}
		flipped.On(d, func(_ *db.Tx, s string) error {
			heard = append(heard, "flipped "+s)
			return nil
		})
		change := func(d *db.DB, n int) error {
			return d.Write(db.WithAccount(t.Context(), "acct"), func(tx *db.Tx) error {
				if err := flipped.Send(tx, "over"); err != nil {
					return err
				}
				return done.Record(tx, event.Subject{ID: "1"}, doneData{N: n, Whole: func() {}})
			})
		}
		if err := errors.Join(change(other, 1), change(d, 1)); err != nil {
			t.Fatal(err)
		}
		want := []string{"flipped over", "first thing.ready 1 acct true", "second thing.ready 1 acct true"}
		if !slices.Equal(heard, want) {
			t.Errorf("heard %q", heard)
		}
		if err := change(d, -1); err == nil {
			t.Error("an error of a subscriber was ignored")
		}
		var rows []auditRow
		if err := d.Read(t.Context(), func(tx *db.Tx) (err error) { rows, err = trail.All(tx); return err }); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 1 || rows[0].Data != `{"n":1}` {
			t.Errorf("rows %+v", rows)
		}
	})
}

func TestCatalogue(t *testing.T) {
	var names []string
	for _, k := range event.Kinds() {
		names = append(names, k.Name())
	}
	all := []string{"account.deleted", "audit.reaped", "thing.ready", "thing.undone", "thing.unsorted"}
	if !slices.Equal(names, all) || event.TopicOf("thing.ready") != things {
		t.Errorf("the catalogue holds %v", names)
	}
	for what, declare := range map[string]func(){
		"twice":         func() { event.Declare[doneData]("thing.ready", things, "A thing.") },
		"malformed":     func() { event.Declare[doneData]("thing", things, "A thing.") },
		"without a doc": func() { event.Declare[doneData]("thing.said", things, "") },
		"no struct":     func() { event.Declare[int]("thing.counted", things, "A thing.") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a kind %s was declared", what)
				}
			}()
			declare()
		}()
	}
}

// TestOperatorsEvent holds that an operator's act for the platform is recorded on
// no account, although the operator's credential belongs to one.
func TestOperatorsEvent(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		var heard []string
		undone.On(d, func(_ *db.Tx, e event.Event[event.None]) error {
			heard = append(heard, e.Subject.ID+" of "+e.Subject.Account)
			return nil
		})
		ctx := policy.With(db.WithAccount(t.Context(), "home"), policy.Actor{Credential: policy.Operator, UserID: "op", AccountID: "home"})
		if err := d.Write(ctx, func(tx *db.Tx) error {
			if err := undone.Record(tx, event.Subject{ID: "1"}, event.None{}); err != nil {
				return err
			}
			return undone.Operated(tx, event.Subject{ID: "2", Account: "acme"}, event.None{}, nil)
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(heard, []string{"1 of ", "2 of acme"}) {
			t.Errorf("heard %q", heard)
		}
	})
}
