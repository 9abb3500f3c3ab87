package due

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

// Config is what a Kernel is made of.
type Config struct {
	DB     *db.DB
	Hub    *event.Hub // tells the kernels of other nodes, if it has a relay
	Logger *slog.Logger
	Every  time.Duration // between two looks without a notice; 0: 15 s
	Node   string        // of this process; no other one, past or present, has the same; empty: one is made
}

// Kernel works on the entries of all queues on one node. Queues are given to Register before
// Loop.
type Kernel struct {
	Config
	node   string
	queues map[string]*worker
	freed  chan struct{} // a job has ended
	clock  clock
	own    bool // go by the server's time although the database has a clock of its own; for tests
	sweeps atomic.Int64
	begun  atomic.Int64 // jobs
	point  func(name string)
}

// New makes a Kernel without queues.
func New(c Config) *Kernel {
	c.Every = cmp.Or(c.Every, 15*time.Second)
	return &Kernel{
		Config: c, node: cmp.Or(c.Node, id.New()), queues: map[string]*worker{}, freed: make(chan struct{}, 1), point: func(string) {},
	}
}

// worker is a queue with its type erased.
type worker struct {
	name          string
	hold          time.Duration
	retry         Ladder
	atOnce, share int
	load          func(tx *db.Tx, key string) (row any, ok bool, err error)
	work          func(ctx context.Context, h *held, row any) Outcome
	giveUp        func(tx *db.Tx, key, why string) error
	open          func(tx *db.Tx, most int) ([]Open, error)

	mu       sync.Mutex
	busy     map[string]int // entries in work, by account
	all      int            // entries in work
	suspects int            // entries that this node has
	ahead    []*held        // entries that wait for a place, see claim.go
	took     time.Duration  // that work lasts, on average; 0: not known yet
	last     string         // the lane that was served last
	more     bool           // the last claim found something; only the loop uses it
}

// Register has the kernel work on a queue, and answers the way into it. Call it before Loop.
// It panics if there is a queue of that name.
func Register[Row any](k *Kernel, q Queue[Row]) Entries {
	w := &worker{
		name: q.Name, hold: cmp.Or(q.Hold, 30*time.Second), retry: q.Retry, atOnce: cmp.Or(q.AtOnce, 8),
		giveUp: q.GiveUp, open: q.Open, busy: map[string]int{},
	}
	w.share = cmp.Or(q.Share, max(w.atOnce-1, 1))
	w.load = func(tx *db.Tx, key string) (any, bool, error) { return q.Load(tx, key) }
	w.work = func(ctx context.Context, h *held, row any) (o Outcome) {
		defer func() {
			if p := recover(); p != nil {
				o = Again(panicked(p))
			}
		}()
		return q.Work(ctx, Job[Row]{
			Key: h.Key, Account: h.account(), Tries: int(h.Tries), Row: row.(Row), renew: func(tx *db.Tx) { k.renewIn(tx, w, h) },
		})
	}
	if k.queues[q.Name] != nil {
		panic("due: two queues named " + q.Name)
	}
	k.queues[q.Name] = w
	return Entries{q.Name, k}
}

// Wake has the kernel of this node look at once.
func (k *Kernel) Wake() { k.Hub.Wake(event.DueTopic) }

// notify has the kernels of all nodes look after the commit.
func (k *Kernel) notify(tx *db.Tx) { k.Hub.Notify(tx, event.DueTopic) }

// Loop works until ctx ends. Then it waits for what is in work, whose context has ended too,
// and gives back what was cut off.
func (k *Kernel) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	var working sync.WaitGroup
	defer working.Wait()
	defer k.putBack(ctx, true)
	working.Go(func() { k.watch(ctx) })
	var until time.Time
	var notice <-chan struct{}
	for look, first := true, true; ctx.Err() == nil; first = false {
		var err error
		if look {
			notice = k.Hub.Watch(event.DueTopic)
			in, over := observe.Pass(ctx, "due.sweep")
			var next time.Duration
			next, err = k.pass(in, &working, first)
			until = time.Now().Add(next)
			observe.Failed(in, err)
			over()
		} else {
			err = k.refill(ctx, &working)
		}
		if err != nil && ctx.Err() == nil {
			k.Logger.WarnContext(ctx, "look for what is due", slog.Any("error", err))
		}
		look = true
		timer := time.NewTimer(max(min(time.Until(until), k.putBack(ctx, false)), time.Millisecond))
		select {
		case <-ctx.Done():
		case <-notice:
		case <-timer.C:
		case <-k.freed:
			look = false
		}
		timer.Stop()
	}
	return nil
}

// Drain works on what is due until nothing is, and returns when all of that is recorded; on
// that of some queues alone, if any are named. It is for tests, and for what has no loop.
func (k *Kernel) Drain(ctx context.Context, queues ...string) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	for first := true; ctx.Err() == nil; first = false {
		var working sync.WaitGroup
		before := k.begun.Load()
		next, err := k.pass(ctx, &working, first, queues...)
		working.Wait()
		soon := k.served() && next <= drift // by this node's idea of the server's time it is due already
		if err != nil || k.begun.Load() == before && !soon {
			return err
		}
	}
	return ctx.Err()
}

// Restarted takes what a node that has died had, while no other node runs. All of it is
// suspect.
func (k *Kernel) Restarted(tx *db.Tx) error {
	_, err := restarted.Exec(tx, db.Micros(k.now(tx)))
	return err
}

// Gone takes what nodes had that are gone, by their Config.Node. All of it is suspect.
func (k *Kernel) Gone(tx *db.Tx, nodes []string) error {
	n, err := gone(tx, nodes, db.Micros(k.now(tx)))
	if err == nil && n > 0 {
		k.notify(tx)
	}
	return err
}

// refill takes more for the places that have become free, where there was more.
func (k *Kernel) refill(ctx context.Context, working *sync.WaitGroup) error {
	for _, w := range k.queues {
		if w.more {
			if err := k.fill(ctx, w, working); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass looks once, and begins work at what is due, in all queues or in those that are named. It
// answers in how long something will be.
func (k *Kernel) pass(ctx context.Context, working *sync.WaitGroup, first bool, only ...string) (next time.Duration, err error) {
	var ready []string
	for {
		if ready, next, err = k.sweep(ctx); err != nil {
			return k.Every, err
		}
		if fell := k.clock.back(); fell || first { // beside the work: it reads all that waits
			first = false
			working.Go(func() { k.anew(ctx) })
		}
		if next > 0 {
			break
		}
		n := 0
		err := k.DB.Write(ctx, func(tx *db.Tx) (err error) {
			n, err = promote(tx, db.Micros(k.now(tx)))
			return err
		})
		if err != nil || n == 0 { // 0: another node does it
			return 50 * time.Millisecond, err
		}
	}
	for _, name := range ready {
		w := k.queues[name]
		if w == nil || len(only) > 0 && !slices.Contains(only, name) { // of a newer release
			continue
		}
		if err := k.fill(ctx, w, working); err != nil {
			return next, err
		}
	}
	return next, nil
}

// sweep asks which queues have something ready, and in how long there will be more: 0 if
// there is already, and the interval of the loop at most.
func (k *Kernel) sweep(ctx context.Context) (ready []string, next time.Duration, err error) {
	k.sweeps.Add(1)
	begun := time.Now()
	var rows []swept
	var now time.Time
	err = k.DB.Read(ctx, func(tx *db.Tx) (err error) {
		now = tx.Now
		rows, err = sweep(tx)
		return err
	})
	next = k.Every
	for _, r := range rows {
		if r.Queue != "" {
			ready = append(ready, r.Queue)
			continue
		}
		if k.served() {
			now = db.Time(r.Now).Add(time.Since(begun) / 2)
			k.clock.follow(now)
		} else {
			k.clock.seen(now)
		}
		if r.At != 0 {
			next = max(min(next, db.Time(r.At).Sub(now)), 0)
		}
	}
	return ready, next, err
}

// anew starts waits anew after the clock was set back.
func (k *Kernel) anew(ctx context.Context) {
	some := false
	err := k.DB.Read(ctx, func(tx *db.Tx) (err error) {
		some, err = clockTold.One(tx, db.Micros(k.now(tx).Add(setBack)))
		return err
	})
	if err == nil && some {
		err = k.DB.Write(ctx, k.clockSet)
	}
	if err != nil {
		observe.Complain(ctx, k.Logger, "start waits anew after the clock was set back", err)
	}
}

// watch compares, each hour, the rows of the domains and the entries.
func (k *Kernel) watch(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		in, over := observe.Pass(ctx, "due.guard")
		if err := k.guard(in); err != nil {
			observe.Complain(in, k.Logger, "compare rows with what is due", err)
		}
		over()
	}
}
