package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

const (
	// maxGroup bounds the members of one commit, so that under steady load the
	// first does not wait for ever.
	maxGroup = 128
	// wary is how many writers after a group that had to be undone get a
	// savepoint each: whoever keeps failing costs the others a savepoint, and
	// not their work.
	wary = 4 * maxGroup
)

// groupWriter lets concurrent writers share one durable commit. A baton goes
// from writer to writer: who holds it owns the connection. The holder runs its
// function, on its own goroutine, and hands the baton to the next in line with
// the transaction still open; the holder behind whom nobody waits commits for
// all. A lone writer thus commits at once, and those who come while a commit is
// syncing form the next group.
//
// A savepoint around every function would undo one that failed alone, and costs
// those that do not fail about as much as their own statements. So at first
// there is none: a function that failed before it changed anything needs no
// undoing, and one that failed later undoes its whole group, whose members then
// run again in a savepoint each.
type groupWriter struct {
	conn   *sqliteConn // the holder's
	open   *group      // the holder's; nil when no transaction is open
	memory memory      // the holder's
	wary   int         // the holder's; how many more get a savepoint

	mu      sync.Mutex
	held    bool
	closed  bool
	waiting []chan struct{} // first come, first served; closing one hands over the baton
}

// group is the writers of one commit.
type group struct {
	size   int
	db     *DB
	owed   []step        // by its members so far
	undone bool          // a member failed halfway
	err    error         // why all are lost; final when done is closed
	again  bool          // all have to run again; final when done is closed
	after  func()        // what the steps at its end owe to the commit; final when done is closed
	done   chan struct{} // closed after the commit, or the rollback
}

var errAbandoned = errors.New("the function of a transaction did not return")

func (w *groupWriter) write(ctx context.Context, fn func(querier) error) error {
	for again := false; ; again = true {
		if err := w.enter(ctx); err != nil {
			return err
		}
		g, err := w.run(fn, again)
		if g == nil {
			return err
		}
		// A function that failed waits too: what made it fail may be a row of the
		// same group.
		<-g.done
		if g.again {
			continue
		}
		if g.err != nil {
			return g.err
		}
		g.after()
		return err
	}
}

// run is one holder's turn. It returns a nil group if there is no transaction.
func (w *groupWriter) run(fn func(querier) error, again bool) (g *group, err error) {
	defer w.leave()
	if w.open == nil {
		if err := w.begin(); err != nil {
			return nil, err
		}
	}
	g = w.open
	g.size++
	m := &member{writer: w, group: g, alone: again || w.wary > 0}
	if w.wary > 0 {
		w.wary--
	}
	if m.alone {
		if g.err = w.conn.control("SAVEPOINT member"); g.err != nil {
			return g, g.err
		}
	}
	err = errAbandoned // stands if fn panics or leaves its goroutine
	defer func() {
		switch {
		case m.alone:
			m.release(err)
		case err != nil:
			g.undone = m.changed
		}
	}()
	err = fn(m)
	return g, err
}

func (w *groupWriter) begin() error {
	if err := w.conn.control("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := w.memory.check(w.conn); err != nil {
		_ = w.conn.control("ROLLBACK") // of nothing
		return err
	}
	w.open = &group{after: func() {}, done: make(chan struct{})}
	return nil
}

// member runs the statements of one writer. They run without the caller's
// cancellation: SQLite answers an interrupted change by rolling back the whole
// transaction, which here belongs to others too.
type member struct {
	writer  *groupWriter
	group   *group
	alone   bool // in a savepoint
	changed bool // there may be something to undo
}

// release ends a member's savepoint.
func (m *member) release(err error) {
	if err != nil {
		m.writer.memory.forget()
		if lost := m.writer.conn.control("ROLLBACK TO member"); lost != nil {
			m.group.err = fmt.Errorf("%w, after: %w", lost, err)
		}
	}
	if m.group.err == nil {
		m.group.err = m.writer.conn.control("RELEASE member")
	}
}

func (m *member) query(_ context.Context, text string, args []any) (*sql.Rows, error) {
	if !strings.HasPrefix(text, "SELECT") { // WITH and RETURNING may change something
		m.changed = true
		m.writer.memory.change(text)
	}
	rows, err := m.writer.conn.query(context.Background(), text, args)
	m.changed = m.changed || err != nil
	return rows, err
}

func (m *member) exec(_ context.Context, text string, args []any) (sql.Result, error) {
	m.writer.memory.change(text)
	result, err := m.writer.conn.exec(context.Background(), text, args)
	// A violated constraint undoes its statement and nothing else; what other
	// errors undo is not known.
	m.changed = m.changed || !violated(err)
	return result, err
}

func (m *member) share(tx *Tx) bool {
	if m.alone {
		return false
	}
	m.group.db, m.group.owed = tx.db, join(m.group.owed, tx.owed)
	return true
}

func (m *member) ahead() []step { return m.group.owed }

// enter waits for the baton.
func (w *groupWriter) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	if !w.held {
		w.held = true
		w.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	w.waiting = append(w.waiting, turn)
	w.mu.Unlock()
	select {
	case <-turn:
		if err := ctx.Err(); err != nil {
			w.leave()
			return err
		}
		return nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	i := slices.Index(w.waiting, turn)
	if i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	w.mu.Unlock()
	if i < 0 { // the baton came at the same moment
		w.leave()
	}
	return ctx.Err()
}

// leave hands the open transaction to the next in line, or ends it.
func (w *groupWriter) leave() {
	if g := w.open; g != nil {
		if g.err == nil && !g.undone && g.size < maxGroup && w.handOver() {
			return
		}
		w.end(g)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.nextLocked() {
		w.held = false
	}
}

func (w *groupWriter) handOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nextLocked()
}

func (w *groupWriter) nextLocked() bool {
	if len(w.waiting) == 0 {
		return false
	}
	close(w.waiting[0])
	w.waiting = w.waiting[1:]
	return true
}

// end commits the group, or rolls it back, and tells its members.
func (w *groupWriter) end(g *group) {
	g.again = true // stands if a step panics
	defer func() {
		if g.err != nil || g.undone || g.again {
			// Fails when SQLite has rolled back by itself, which is as good.
			_ = w.conn.control("ROLLBACK")
			w.memory.forget()
		}
		if g.again {
			w.wary = wary
		}
		w.open = nil
		close(g.done)
	}()
	alone := g.size == 1
	if g.undone {
		g.again = !alone
		return
	}
	if g.err == nil {
		// Which member's step failed shows when each takes its own.
		if err := w.settle(g); err != nil && !alone {
			return
		} else if err != nil {
			g.err, g.again = err, false
			return
		}
		g.err = w.conn.control("COMMIT")
	}
	g.again = false
	if g.err != nil {
		g.err = fmt.Errorf("db: shared transaction lost: %w", g.err)
	}
}

// settle takes the steps that the members owe. What those owe to the commit is
// nobody's in particular: whichever member comes first sees to it, and the
// others wait.
func (w *groupWriter) settle(g *group) error {
	if len(g.owed) == 0 {
		return nil
	}
	tx := g.db.begin(context.Background(), &member{writer: w, group: &group{}, alone: true})
	defer tx.over.Store(true)
	tx.owed = g.owed
	if err := tx.finish(); err != nil {
		return err
	}
	g.after = sync.OnceFunc(tx.committed)
	return tx.failed
}

// close waits for the writers in line and refuses later ones.
func (w *groupWriter) close() {
	w.mu.Lock()
	w.closed = true
	if !w.held {
		w.held = true
		w.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	w.waiting = append(w.waiting, turn)
	w.mu.Unlock()
	<-turn
	if g := w.open; g != nil {
		w.end(g)
	}
}
