package event

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
)

// Consumer reads the events of every account after they are committed, on any free
// node: each event once, those of one account in order.
type Consumer struct {
	// Name is the key of its position in each account's events. It must never
	// change.
	Name  string
	Kinds []Any
	// Handle handles an event in the transaction that moves the consumer past it,
	// so its writes and the move are atomic. The transaction belongs to the event's
	// account; Handle must not call anything outside of the database. An error
	// undoes everything, and the account's events wait: a second, then twice as
	// long each time, an hour at most.
	Handle func(tx *db.Tx, e Recorded) error
}

// Recorded is an event that is read after its commit.
type Recorded struct {
	ID        string
	AccountID string
	Seq       int64 // in the account's chain, from 1
	At        time.Time
	Actor     string
	Kind      string
	Object    string
	RepoID    *string
	RequestID string
	Data      jsontext.Value `db:"-"`
}

const (
	// sweepEvery is the interval of the search for accounts with unread events:
	// another node may have recorded them and ended before it could read them.
	sweepEvery = 5 * time.Second
	// readAtOnce limits the events that one transaction handles.
	readAtOnce = 100
	// behind is how many events of other kinds a consumer's position may be behind.
	// The position is not written for each of them.
	behind = 500
	// longestWait is the longest pause between two tries.
	longestWait = time.Hour
)

// Readers runs consumers.
type Readers struct {
	db     *db.DB
	logger *slog.Logger
	all    []*reader
}

// reader is a running consumer.
type reader struct {
	Consumer
	names []string
	added chan struct{} // of capacity one: an account was added to due

	mu  sync.Mutex
	due map[string]bool // accounts with newly committed events
}

// NewReaders prepares consumers of the events of d. Call it before the first
// transaction that records an event.
func NewReaders(d *db.DB, logger *slog.Logger, consumers []Consumer) *Readers {
	rs := &Readers{db: d, logger: logger}
	heard := subscriptions.Of(d)
	heard.Lock()
	defer heard.Unlock()
	if heard.readers == nil {
		heard.readers = map[string][]*reader{}
	}
	for _, c := range consumers {
		r := &reader{Consumer: c, added: make(chan struct{}, 1), due: map[string]bool{}}
		for _, k := range c.Kinds {
			r.names = append(r.names, k.Name())
			heard.readers[k.Name()] = append(heard.readers[k.Name()], r)
		}
		rs.all = append(rs.all, r)
	}
	return rs
}

// Begin sets the first position of consumers with a new name: after all events so
// far. Call it before the first transaction that records an event.
func (rs *Readers) Begin(ctx context.Context) error {
	return rs.db.Write(ctx, func(tx *db.Tx) error {
		for _, r := range rs.all {
			n, err := insertReader.Exec(tx, r.Name, tx.Now)
			if err == nil && n > 0 {
				_, err = beginEverywhere.Exec(tx, r.Name)
			}
			if err != nil {
				return fmt.Errorf("begin to read events as %s: %w", r.Name, err)
			}
		}
		return nil
	})
}

// Loop reads events until ctx ends.
func (rs *Readers) Loop(ctx context.Context) error {
	var all sync.WaitGroup
	for _, r := range rs.all {
		all.Go(func() { rs.run(ctx, r) })
	}
	all.Wait()
	return nil
}

func (rs *Readers) run(ctx context.Context, r *reader) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	rs.sweep(ctx, r)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.added:
			for _, account := range r.take() {
				rs.read(ctx, r, account)
			}
		case <-tick.C:
			rs.sweep(ctx, r)
		}
	}
}

// wake makes the reader read an account soon.
func (r *reader) wake(account string) {
	r.mu.Lock()
	r.due[account] = true
	r.mu.Unlock()
	select {
	case r.added <- struct{}{}:
	default:
	}
}

func (r *reader) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for account := range r.due {
		out = append(out, account)
	}
	clear(r.due)
	slices.Sort(out)
	return out
}

// sweep reads the events of every account that has unread ones.
func (rs *Readers) sweep(ctx context.Context, r *reader) {
	ctx, end := observe.Pass(ctx, "reader."+r.Name)
	defer end()
	after := ""
	for ctx.Err() == nil {
		var accounts []string
		err := rs.db.Read(ctx, func(tx *db.Tx) (err error) {
			accounts, err = selectBehind.All(tx, selectBehindArgs{
				Reader: r.Name, AccountID: after, DueAt: tx.Now, Limit: readAtOnce,
			})
			return err
		})
		if err != nil {
			rs.complain(ctx, r, "look for events to read", err)
			return
		}
		for _, account := range accounts {
			rs.read(ctx, r, account)
			after = account
		}
		if len(accounts) < readAtOnce {
			return
		}
	}
}

// read handles the unread events of an account.
func (rs *Readers) read(ctx context.Context, r *reader, account string) {
	for ctx.Err() == nil {
		some, err := rs.any(ctx, r, account)
		if err != nil {
			rs.complain(ctx, r, "look for events to read", err)
			return
		}
		if !some {
			return
		}
		more, err := rs.handle(ctx, r, account)
		if err != nil {
			rs.fail(ctx, r, account, err)
			return
		}
		if !more {
			return
		}
	}
}

// any tells, without a lock, whether the account has work for the consumer.
func (rs *Readers) any(ctx context.Context, r *reader, account string) (some bool, err error) {
	err = rs.db.Read(db.WithAccount(ctx, account), func(tx *db.Tx) error {
		c, _, err := selectCursor.Maybe(tx, r.Name, account)
		if err != nil {
			return err
		}
		newest, err := headOf(tx, account)
		if err != nil || newest <= c.Seq {
			return err
		}
		rows, err := recorded(tx, account, c.Seq, newest, r.names, 1)
		some = len(rows) > 0 || newest-c.Seq >= behind
		return err
	})
	return some, err
}

// handle passes the next events to the consumer in the transaction that moves it
// past them. It does nothing if another node does so already.
func (rs *Readers) handle(ctx context.Context, r *reader, account string) (more bool, err error) {
	err = rs.db.Write(db.WithAccount(ctx, account), func(tx *db.Tx) error {
		more = false
		if _, err := insertCursor.Exec(tx, r.Name, account); err != nil {
			return err
		}
		c, ok, err := claimCursor.Maybe(tx, r.Name, account)
		if err != nil || !ok || c.DueAt != nil && c.DueAt.After(tx.Now) {
			return err
		}
		// The head is read first. The rows of a chain are committed in order, so
		// all rows up to the head are visible.
		to, err := headOf(tx, account)
		if err != nil {
			return err
		}
		rows, err := recorded(tx, account, c.Seq, to, r.names, readAtOnce)
		if err != nil {
			return err
		}
		for _, e := range rows {
			if err := r.Handle(tx, e); err != nil {
				return err
			}
		}
		if more = len(rows) == readAtOnce; more {
			to = rows[len(rows)-1].Seq
		}
		_, err = moveCursor.Exec(tx, r.Name, account, to)
		return err
	})
	return more, err
}

// fail records that the events of an account could not be handled, and when to try
// again.
func (rs *Readers) fail(ctx context.Context, r *reader, account string, cause error) {
	observe.Failed(ctx, cause)
	if ctx.Err() != nil {
		return
	}
	rs.complain(ctx, r, "handle events", cause, slog.String("account", account))
	err := rs.db.Write(ctx, func(tx *db.Tx) error {
		c, _, err := selectCursor.Maybe(tx, r.Name, account)
		if err != nil {
			return err
		}
		wait := min(time.Second<<min(c.Tries, 12), longestWait)
		if wait < sweepEvery { // longer waits are found by a sweep
			tx.AfterCommit(func() { time.AfterFunc(wait, func() { r.wake(account) }) })
		}
		if _, err := insertCursor.Exec(tx, r.Name, account); err != nil {
			return err
		}
		_, err = postpone.Exec(tx, r.Name, account, tx.Now.Add(wait))
		return err
	})
	if err != nil {
		rs.complain(ctx, r, "postpone events", err)
	}
}

func (rs *Readers) complain(ctx context.Context, r *reader, what string, err error, more ...any) {
	observe.Failed(ctx, err)
	if ctx.Err() == nil {
		rs.logger.ErrorContext(ctx, what, append([]any{slog.String("reader", r.Name), slog.Any("error", err)}, more...)...)
	}
}
