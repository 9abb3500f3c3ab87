package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/chance"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	allMeters = db.Q[meterRow](`SELECT scope, ref, period, reserved, spent FROM budgets WHERE account_id = $1 ORDER BY scope, ref`)
	expire    = db.S(`UPDATE reservations SET expires_at = 0 WHERE node = $1`)
)

type meterRow struct {
	Scope, Ref, Period string
	Reserved, Spent    int64
}

// world is an account with a task and sessions. It is Work and Prices, and keeps the
// signals that were sent.
type world struct {
	t  *testing.T
	db *db.DB

	mu     sync.Mutex
	halted map[string]string
	freed  []string
	now    time.Time
	priced bool // all models
	asked  []priceAsked
}

// priceAsked is a call of Priced.
type priceAsked struct {
	account string
	model   Model
}

func (w *world) node() *Service {
	return New(Needs{DB: w.db, Hub: event.NewHub(), Logger: slog.New(slog.DiscardHandler), Node: id.New(), Work: w, Prices: w,
		Clock: func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now },
	})
}

// Limits returns no limits.
func (w *world) Limits(*db.Tx, string) (Defaults, error) { return Defaults{}, nil }

func (w *world) SetTaskBudget(*db.Tx, string, *int64) (*int64, error) {
	return nil, fault.Missing("task")
}

func (w *world) HasPlan(*db.Tx, string) (bool, error) { return false, nil }
func (w *world) Repo(*db.Tx, string, string) (id, full string, ok bool, err error) {
	return "", "", false, nil
}

// Priced returns world.priced.
func (w *world) Priced(_ *db.Tx, account string, m Model) (bool, error) {
	w.asked = append(w.asked, priceAsked{account, m})
	return w.priced, nil
}

func onBoth(t *testing.T, limits map[string]int64, fn func(*testing.T, *world)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		w := &world{t: t, db: d, halted: map[string]string{}, now: time.Now()}
		RunStopped.On(d, func(_ *db.Tx, s Stopped) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.halted[s.RunID] = s.Why
			return nil
		})
		TaskFreed.On(d, func(_ *db.Tx, f Freed) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.freed = append(w.freed, f.ID)
			return nil
		})
		w.write(func(tx *db.Tx) error {
			of := func(scope string) *int64 {
				if n, ok := limits[scope]; ok {
					return &n
				}
				return nil
			}
			err1 := seed.Add(tx, seed.Account{ID: "acme", Cap: of("operator")})
			err2 := seed.Add(tx, seed.Repo{ID: "repo", Account: "acme"})
			err3 := seed.Add(tx, seed.Task{ID: "task", Account: "acme", Repo: "repo", Status: "running", Budget: of(Task), By: new("ada")})
			var err4 error
			for _, s := range []string{"s1", "s2", "s3"} {
				err := seed.Add(tx, seed.Session{
					ID: s, Account: "acme", Run: new("run-" + s), Task: new("task"), Repo: "repo", Kind: "scout",
				})
				err4 = errors.Join(err4, err)
			}
			refs := map[string]string{Account: "acme", Member: "ada", Repo: "repo"}
			for _, scope := range []string{Account, Member, Repo} {
				if m := of(scope); m != nil {
					_, err := setLimit.Exec(tx, setLimitArgs{AccountID: "acme", Scope: scope, Ref: refs[scope], Micros: *m})
					err4 = errors.Join(err4, err)
				}
			}
			return errors.Join(err1, err2, err3, err4)
		})
		fn(t, w)
	})
}

func (w *world) write(fn func(*db.Tx) error) {
	w.t.Helper()
	if err := w.db.Write(db.WithAccount(context.Background(), "acme"), fn); err != nil {
		w.t.Fatal(err)
	}
}

// meters are the account's meters by scope and ref.
func (w *world) meters() map[string]meterRow {
	w.t.Helper()
	out := map[string]meterRow{}
	err := w.db.Read(context.Background(), func(tx *db.Tx) error {
		rows, err := allMeters.All(tx, "acme")
		for _, r := range rows {
			out[r.Scope+" "+r.Ref] = r
			if r.Reserved < 0 || r.Spent < 0 {
				w.t.Errorf("%+v", r)
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) settle(s *Service, session string, reserved, cost int64) {
	w.t.Helper()
	w.write(func(tx *db.Tx) error {
		return s.Settle(tx, []Call{{Session: session, Account: "acme", Reserved: reserved, Cost: &cost}})
	})
}

func TestCallCountsOnEveryMeter(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *world) {
		s := w.node()
		n, err := s.Reserve(t.Context(), "s1", 70_000, 10_000)
		if err != nil || n != 70_000 {
			t.Fatal(n, err)
		}
		m := w.meters()
		for _, k := range []string{"account acme", "member ada", "task task", "run run-s1"} {
			if m[k].Reserved < 70_000 || m[k].Spent != 0 {
				t.Errorf("%s: %+v before the call", k, m[k])
			}
		}
		w.settle(s, "s1", n, 12_345)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for k, m := range w.meters() {
			if m.Reserved != 0 || m.Spent != 12_345 {
				t.Errorf("%s: %+v after it", k, m)
			}
		}
	})
}

func TestLimitStopsTheRun(t *testing.T) {
	t.Parallel()
	for scope, why := range map[string]string{"operator": "account", Account: "account", Member: "member", Repo: "repo", Task: "task"} {
		t.Run(scope, func(t *testing.T) {
			onBoth(t, map[string]int64{scope: 100_000}, func(t *testing.T, w *world) {
				s := w.node()
				s.patience = 0
				n, err := s.Reserve(t.Context(), "s1", 150_000, 60_000)
				if err != nil || n != 100_000 {
					t.Fatalf("%d, %v: the call is not cut to what is left", n, err)
				}
				if _, err := s.Reserve(t.Context(), "s2", 1, 1); !fault.IsKind(err, fault.PaymentRequired) ||
					fault.From(err).Slug != SlugExhausted {
					t.Fatalf("%v while everything is set aside", err)
				}
				w.settle(s, "s1", n, 40_000)
				if n, err = s.Reserve(t.Context(), "s1", 60_000, 60_000); err != nil || n != 60_000 {
					t.Fatalf("%d, %v: what was not used is not free", n, err)
				}
				w.settle(s, "s1", n, 60_000)
				if _, err = s.Reserve(t.Context(), "s1", 0, 0); !fault.IsKind(err, fault.PaymentRequired) {
					t.Errorf("%v when nothing is left: a call without a price goes on", err)
				}
				if w.halted["run-s1"] == "" || w.halted["run-s2"] == "" {
					t.Errorf("halted %v", w.halted)
				}
				if m := w.meters()[why+" "+map[string]string{"account": "acme", "member": "ada",
					"repo": "repo", "task": "task"}[why]]; m.Spent != 100_000 || m.Reserved != 0 {
					t.Errorf("%+v", m)
				}
			})
		})
	}
}

func TestRaisedLimitFreesTheTask(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Member: 10}, func(t *testing.T, w *world) {
		s := w.node()
		if _, err := s.Reserve(t.Context(), "s1", 20, 20); !fault.IsKind(err, fault.PaymentRequired) {
			t.Fatal(err)
		}
		for _, c := range []struct {
			limit int64
			freed int
		}{{5, 0}, {10, 0}, {30, 1}} {
			w.write(func(tx *db.Tx) error { return s.setLimit(tx, Member, "ada", memberSetEvent, &c.limit) })
			if len(w.freed) != c.freed {
				t.Errorf("limit %d: freed %v", c.limit, w.freed)
			}
		}
		if n, err := s.Reserve(t.Context(), "s1", 20, 20); err != nil || n != 20 {
			t.Errorf("%d, %v under the new limit", n, err)
		}
	})
}

func TestOperatorRaisesTheCap(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{"operator": 10, Account: 100}, func(t *testing.T, w *world) {
		s := w.node()
		if _, err := s.Reserve(t.Context(), "s1", 20, 20); !fault.IsKind(err, fault.PaymentRequired) {
			t.Fatal(err)
		}
		own, low, high := int64(200), int64(9), int64(50)
		w.write(func(tx *db.Tx) error { return s.setLimit(tx, Account, "acme", capSetEvent, &own) })
		operator := func(micros int64) {
			w.write(func(tx *db.Tx) error {
				return errors.Join(people.SetSpendCap(tx, "acme", &micros), s.Recheck(tx, "acme"))
			})
		}
		operator(low)
		if len(w.freed) != 0 {
			t.Errorf("freed %v under the operator's cap", w.freed)
		}
		operator(high)
		if len(w.freed) != 1 {
			t.Errorf("freed %v when the operator raised the cap", w.freed)
		}
	})
}

func TestUnpricedCallsTakeNothing(t *testing.T) {
	t.Parallel()
	for _, limits := range []map[string]int64{nil, {Account: 1_000_000}} {
		onBoth(t, limits, func(t *testing.T, w *world) {
			if n, err := w.node().Reserve(t.Context(), "s1", 0, 0); err != nil || n != 0 {
				t.Error(n, err)
			}
			for k, m := range w.meters() {
				if m.Reserved != 0 || m.Spent != 0 {
					t.Errorf("%s: %+v", k, m)
				}
			}
		})
	}
	onBoth(t, map[string]int64{Account: 0}, func(t *testing.T, w *world) {
		if _, err := w.node().Reserve(t.Context(), "s1", 0, 0); !fault.IsKind(err, fault.PaymentRequired) {
			t.Errorf("%v where nothing may be spent", err)
		}
		if len(w.halted) != 1 {
			t.Errorf("halted %v", w.halted)
		}
	})
}

func TestMonthEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Account: 1000}, func(t *testing.T, w *world) {
		s := w.node()
		n, err := s.Reserve(t.Context(), "s1", 400, 400)
		if err != nil {
			t.Fatal(err)
		}
		w.write(func(tx *db.Tx) error {
			tx.Now = tx.Now.AddDate(0, 2, 0)
			_, err := keepAlive.Exec(tx, s.Node, tx.Now.Add(time.Hour))
			return err
		})
		w.settle(s, "s1", n, 400)
		// In the next month the whole limit is there again.
		later := w.node()
		err = w.db.Write(t.Context(), func(tx *db.Tx) error {
			tx.Now = tx.Now.AddDate(0, 2, 0)
			sub, err := selectSubject.One(tx, "s2")
			if err != nil {
				return err
			}
			meters, err := later.meters(tx, sub)
			if err != nil {
				return err
			}
			b, err := lockBalances(tx, "acme", meters)
			if left := roomOn(meters, b); left.left != 1000 || left.tightest.Scope != Account {
				t.Errorf("%d left on %v", left.left, left.tightest)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// inDays is what the ledger of days has in all.
func (w *world) inDays() (micros int64) {
	w.write(func(tx *db.Tx) error {
		days, err := callsByDay.All(tx, "acme", int64(0), int64(1<<40))
		for _, d := range days {
			micros += d.Spent
		}
		return err
	})
	return micros
}

// TestDeadNode: the reservations of a node that died count as spent, once. A node
// that only seemed dead takes them back.
func TestDeadNode(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 1_000_000}, func(t *testing.T, w *world) {
		dead, other := w.node(), w.node()
		n, err := dead.Reserve(t.Context(), "s1", 300_000, 300_000)
		if err != nil {
			t.Fatal(err)
		}
		heldBy := w.meters()["task task"].Reserved
		w.write(func(tx *db.Tx) error { _, err := expire.Exec(tx, dead.Node); return err })
		if err := other.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m := w.meters()["task task"]; m.Reserved != 0 || m.Spent != heldBy {
			t.Fatalf("%+v, of %d held", m, heldBy)
		}
		if got := w.inDays(); got != heldBy {
			t.Errorf("the days have %d of %d", got, heldBy)
		}
		w.settle(dead, "s1", n, 200_000) // it lives, and has what it held
		if m := w.meters()["task task"]; m.Reserved != heldBy-200_000 || m.Spent != 200_000 {
			t.Errorf("%+v", m)
		}
		if got := w.inDays(); got != 200_000 {
			t.Errorf("the days have %d", got)
		}
		if n, err = dead.Reserve(t.Context(), "s1", 100_000, 100_000); err != nil {
			t.Fatal(err)
		}
		w.write(func(tx *db.Tx) error { _, err := expire.Exec(tx, dead.Node); return err })
		for range 2 { // the second time for good
			if err := other.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.write(func(tx *db.Tx) error { _, err := expire.Exec(tx, dead.Node); return err })
		}
		w.settle(dead, "s1", n, 50_000)
		if m := w.meters()["task task"]; m.Reserved != 0 || m.Spent != heldBy {
			t.Errorf("%+v", m)
		}
	})
}

// TestNeverOvershot has many callers on two nodes use up one limit, and abandon some
// of their calls. After every step no meter exceeds the limit.
func TestNeverOvershot(t *testing.T) {
	t.Parallel()
	const limit = 3_000_000
	onBoth(t, map[string]int64{Task: limit, Account: limit + 500_000}, func(t *testing.T, w *world) {
		nodes := []*Service{w.node(), w.node()}
		for _, s := range nodes {
			s.patience = 0
		}
		seed := chance.Seed(t)
		var wg sync.WaitGroup
		for caller := range 6 {
			rnd := rand.New(rand.NewPCG(seed, uint64(caller)))
			wg.Go(func() {
				for range 40 {
					s, session := nodes[rnd.IntN(2)], fmt.Sprint("s", 1+rnd.IntN(3))
					most := rnd.Int64N(200_000)
					n, err := s.Reserve(context.Background(), session, most, min(most, 50_000))
					if fault.IsKind(err, fault.PaymentRequired) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					switch cost := rnd.Int64N(n + 1); rnd.IntN(10) {
					case 0:
						s.Abandon([]Call{{Session: session, Account: "acme", Reserved: n, Cost: nil}})
					case 1:
						w.settleNow(s, Call{Session: session, Account: "acme", Reserved: n, Cost: nil})
					default:
						w.settleNow(s, Call{Session: session, Account: "acme", Reserved: n, Cost: &cost})
					}
					if m := w.meters()["task task"]; m.Reserved+m.Spent > limit {
						t.Errorf("seed %d: %d set aside and %d spent of %d", seed, m.Reserved, m.Spent, int64(limit))
						return
					}
				}
			})
		}
		wg.Wait()
		for _, s := range nodes {
			if err := s.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for k, m := range w.meters() {
			if m.Reserved != 0 {
				t.Errorf("seed %d: %s keeps %d set aside", seed, k, m.Reserved)
			}
		}
	})
}

func (w *world) settleNow(s *Service, c Call) {
	if err := w.db.Write(context.Background(), func(tx *db.Tx) error { return s.Settle(tx, []Call{c}) }); err != nil {
		w.t.Error(err)
	}
}

// TestCallWaitsForTheCostOfTheOneBefore: the cost of a call is stored a moment after
// its answer. An agent that calls again at once waits for the rest of the amount
// that was set aside, and is not stopped.
func TestCallWaitsForTheCostOfTheOneBefore(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 100_000}, func(t *testing.T, w *world) {
		s := w.node()
		n, err := s.Reserve(t.Context(), "s1", 60_000, 60_000)
		if err != nil {
			t.Fatal(err)
		}
		type answer struct {
			n   int64
			err error
		}
		next := make(chan answer, 1)
		go func() {
			n, err := s.Reserve(t.Context(), "s1", 60_000, 60_000)
			next <- answer{n, err}
		}()
		patience.Until(t, "the call waits", func() bool {
			select {
			case a := <-next:
				t.Fatalf("%d, %v before the cost is known", a.n, a.err)
			default:
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.changed != nil
		})
		w.settle(s, "s1", n, 10_000)
		if a := <-next; a.err != nil || a.n != 60_000 || len(w.halted) > 0 {
			t.Errorf("%d, %v, halted %v", a.n, a.err, w.halted)
		}
	})
}

// KeyLabels is part of Prices: there are a key of the account, and one of a member.
func (*world) KeyLabels(*db.Tx) (map[string]string, error) {
	return map[string]string{"team": "team", "hers": ""}, nil
}

// PoolKeys is part of Prices: there is the key of the walk.
func (*world) PoolKeys(*db.Tx, string) ([]PoolKey, error) { return []PoolKey{{ID: "k"}}, nil }
