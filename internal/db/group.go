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
	// maxGroup limits the members of one commit, so that under steady load the
	// first member does not wait for ever.
	maxGroup = 128
	// separateWriters is how many writers get a savepoint each after a group was
	// undone. A function that keeps failing then costs the others a savepoint, and
	// not their work.
	separateWriters = 4 * maxGroup
)

// groupWriter lets concurrent writers share one durable commit. A baton goes from
// writer to writer; its holder owns the connection. The holder runs its function,
// on its own goroutine, and hands the baton to the next writer in line with the
// transaction still open. A holder behind whom no writer waits commits for all. A
// lone writer thus commits at once, and the writers that arrive while a commit is
// being synced form the next group.
//
// A savepoint around every function would allow undoing a failed one alone, but it
// costs the others about as much as their own statements. So at first there is
// none: a function that failed before it changed anything needs no undoing, and one
// that failed later undoes its whole group, whose members then run again in a
// savepoint each.
type groupWriter struct {
	conn     *sqliteConn // owned by the holder
	open     *group      // owned by the holder; nil when no transaction is open
	memory   memory      // owned by the holder
	separate int         // owned by the holder; how many more writers get a savepoint

	mu      sync.Mutex
	held    bool
	closed  bool
	waiting []chan struct{} // in order of arrival; closing one hands over the baton
}

// group is the writers of one commit.
type group struct {
	size   int
	db     *DB
	steps  []step        // final steps of its members so far
	undone bool          // a member failed halfway
	err    error         // why all members failed; final when done is closed
	again  bool          // all members have to run again; final when done is closed
	after  func()        // runs the AfterCommit functions of the final steps; set when done is closed
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
		// A function that failed waits as well: a row of the same group, which may
		// yet be undone, may have made it fail.
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

// run runs fn while it holds the baton. It returns a nil group if there is no
// transaction.
func (w *groupWriter) run(fn func(querier) error, again bool) (g *group, err error) {
	defer w.leave()
	if w.open == nil {
		if err := w.begin(); err != nil {
			return nil, err
		}
	}
	g = w.open
	g.size++
	m := &member{writer: w, group: g, alone: again || w.separate > 0}
	if w.separate > 0 {
		w.separate--
	}
	if m.alone {
		if g.err = w.conn.control("SAVEPOINT member"); g.err != nil {
			return g, g.err
		}
	}
	err = errAbandoned // the result if fn panics or leaves its goroutine
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
		_ = w.conn.control("ROLLBACK") // nothing was written
		return err
	}
	w.open = &group{after: func() {}, done: make(chan struct{})}
	return nil
}

// member runs the statements of one writer. It ignores the caller's cancellation:
// SQLite rolls back the whole transaction after an interrupted change, and the
// transaction belongs to other writers too.
type member struct {
	writer  *groupWriter
	group   *group
	alone   bool // it runs in a savepoint
	changed bool // it may have changed something
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
	// A violated constraint undoes only its statement. Other errors may undo more.
	m.changed = m.changed || !violated(err)
	return result, err
}

func (m *member) share(tx *Tx) bool {
	if m.alone {
		return false
	}
	m.group.db, m.group.steps = tx.db, join(m.group.steps, tx.steps)
	return true
}

func (m *member) ahead() []step { return m.group.steps }

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
	if i < 0 { // the baton arrived at the same moment
		w.leave()
	}
	return ctx.Err()
}

// leave hands the open transaction to the next writer in line, or ends it.
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

// end commits the group, or rolls it back, and wakes its members.
func (w *groupWriter) end(g *group) {
	g.again = true // the result if a step panics
	defer func() {
		if g.err != nil || g.undone || g.again {
			// ROLLBACK fails if SQLite has rolled back by itself, which has the
			// same effect.
			_ = w.conn.control("ROLLBACK")
			w.memory.forget()
		}
		if g.again {
			w.separate = separateWriters
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
		// If a step fails, each member runs again with its own steps, which shows
		// the failing one.
		if err := w.runSteps(g); err != nil && !alone {
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

// runSteps runs the final steps of all members. One member, whichever comes first,
// runs the AfterCommit functions of these steps; the others wait for it.
func (w *groupWriter) runSteps(g *group) error {
	if len(g.steps) == 0 {
		return nil
	}
	tx := g.db.begin(context.Background(), &member{writer: w, group: &group{}, alone: true})
	defer tx.over.Store(true)
	tx.steps = g.steps
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
