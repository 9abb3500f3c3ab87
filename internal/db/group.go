package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxGroup bounds the members of one commit, so that under steady load the
// first does not wait for ever.
const maxGroup = 128

// groupWriter lets concurrent writers share one durable commit. A baton goes
// from writer to writer: who holds it owns the connection. The holder runs its
// function, on its own goroutine, inside its own savepoint, and hands the baton
// to the next in line with the transaction still open; the holder behind whom
// nobody waits commits for all. A lone writer thus commits at once, and those
// who come while a commit is syncing form the next group.
type groupWriter struct {
	conn *sqliteConn // the holder's
	open *group      // the holder's; nil when no transaction is open

	mu      sync.Mutex
	held    bool
	closed  bool
	waiting []chan struct{} // first come, first served; closing one hands over the baton
}

// group is the writers of one commit.
type group struct {
	size int
	err  error         // why all are lost; final when done is closed
	done chan struct{} // closed after the commit, or the rollback
}

var errAbandoned = errors.New("the function of a transaction did not return")

func (w *groupWriter) write(ctx context.Context, fn func(querier) error) error {
	if err := w.enter(ctx); err != nil {
		return err
	}
	g, err := w.run(fn)
	if g == nil {
		return err
	}
	// A function that failed waits too: what made it fail may be a row of the
	// same group.
	<-g.done
	if g.err != nil {
		return g.err
	}
	return err
}

// run is one holder's turn. It returns a nil group if there is no transaction.
func (w *groupWriter) run(fn func(querier) error) (g *group, err error) {
	defer w.leave()
	if w.open == nil {
		if err := w.conn.control("BEGIN IMMEDIATE"); err != nil {
			return nil, err
		}
		w.open = &group{done: make(chan struct{})}
	}
	g = w.open
	g.size++
	if g.err = w.conn.control("SAVEPOINT member"); g.err != nil {
		return g, g.err
	}
	err = errAbandoned // stands if fn panics or leaves its goroutine
	defer func() {
		if err != nil {
			if lost := w.conn.control("ROLLBACK TO member"); lost != nil {
				g.err = fmt.Errorf("%w, after: %w", lost, err)
			}
		}
		if g.err == nil {
			g.err = w.conn.control("RELEASE member")
		}
	}()
	err = fn(uninterrupted{w.conn})
	return g, err
}

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
		if g.err == nil && g.size < maxGroup && w.handOver() {
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
	if g.err == nil {
		g.err = w.conn.control("COMMIT")
	}
	if g.err != nil {
		g.err = fmt.Errorf("db: shared transaction lost: %w", g.err)
		// Fails when SQLite has rolled back by itself, which is as good.
		_ = w.conn.control("ROLLBACK")
	}
	w.open = nil
	close(g.done)
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

// uninterrupted runs statements without the caller's cancellation: SQLite
// answers an interrupted change by rolling back the whole transaction, which
// here belongs to others too.
type uninterrupted struct{ *sqliteConn }

func (u uninterrupted) query(_ context.Context, text string, args []any) (*sql.Rows, error) {
	return u.sqliteConn.query(context.Background(), text, args)
}

func (u uninterrupted) exec(_ context.Context, text string, args []any) (sql.Result, error) {
	return u.sqliteConn.exec(context.Background(), text, args)
}
