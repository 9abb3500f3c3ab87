// Package hostlimit shares the limits of code hosts among the nodes of a server. What an
// answer says of them is stored by the node that was given it, and every node reads it
// before a call. So a refusal that one node sees keeps all of them from calling.
//
//   - hostlimit.go: Service, and the Limits of a host
//   - store.go: the rows
package hostlimit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
	"yardmaster/internal/db"
	"yardmaster/internal/needs"
)

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Logger *slog.Logger
	Waiter pace.Waiter // a pace.Timer, but in tests
}

// Service has the limits of all hosts.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Of are the Limits of a host for this node. They are shared with those of other nodes.
func (s *Service) Of(host string) pace.Limits {
	return &limits{s: s, host: host, noted: map[string]*noted{}}
}

// What is left of a resource is stored when it has fallen by a saveShare of the limit, or
// saveEvery after it was stored. What keeps nodes from calling is stored at once.
const (
	saveShare = 50
	saveEvery = 5 * time.Second
	patience  = 5 * time.Second // with the database
	forgotten = 24 * time.Hour
)

// limits are the Limits of one host.
type limits struct {
	s    *Service
	host string

	mu    sync.Mutex
	noted map[string]*noted // by payer
	tidy  time.Time
}

// noted is what this node was told of a payer's limits.
type noted struct {
	state pace.State
	saved map[string]savedHour // by resource
}

type savedHour struct {
	pace.Hour
	at time.Time
}

// Take implements pace.Limits. A database that does not answer makes the host busy: the
// limits are not known.
func (l *limits) Take(ctx context.Context, payer string, c pace.Cost) error {
	if payer == "" {
		return nil
	}
	var wait time.Duration
	var refused error
	take := func(tx *db.Tx) error {
		state, err := read(tx, l.host, payer)
		if err != nil {
			return err
		}
		l.add(payer, &state)
		if wait, refused = state.Take(tx.Now, c); refused != nil || !c.Write {
			return nil
		}
		return write(tx, l.host, payer, state, c.Content)
	}
	// The context of the caller is that of a request, whose answer a write would be.
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if c.Write {
		err = l.s.DB.Write(within, func(tx *db.Tx) error {
			if err := lock(tx, l.host, payer); err != nil {
				return err
			}
			return take(tx)
		})
	} else {
		err = l.s.DB.Read(within, take)
	}
	switch {
	case err != nil:
		return &codehost.BusyError{Cause: err}
	case refused != nil || wait <= 0:
		return refused
	}
	return l.s.Waiter.Wait(ctx, wait)
}

// add puts to a state what this node was told and has not stored.
func (l *limits) add(payer string, s *pace.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.noted[payer]
	if n == nil {
		return
	}
	for resource, h := range n.state.Hours {
		s.Note(time.Time{}, pace.Note{Resource: resource, Limit: h.Limit, Remaining: h.Remaining, Reset: h.Reset})
	}
}

// Note implements pace.Limits.
func (l *limits) Note(payer string, n pace.Note) {
	if payer == "" || n.Resource == "" && n.Blocked <= 0 && !n.Refused {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var now time.Time
	err := l.s.DB.Read(ctx, func(tx *db.Tx) error { now = tx.Now; return nil })
	if err == nil && l.worth(now, payer, n) {
		err = l.s.DB.Write(ctx, func(tx *db.Tx) error { return save(tx, l.host, payer, n) })
	}
	if err == nil && l.due(now) {
		err = l.s.DB.Write(ctx, func(tx *db.Tx) error { return forget(tx, now.Add(-forgotten)) })
	}
	if err != nil {
		l.s.Logger.ErrorContext(ctx, "store the limits of a code host", slog.Any("error", err))
	}
}

// worth notes what an answer said, and tells whether it is to be stored now.
func (l *limits) worth(now time.Time, payer string, n pace.Note) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.noted[payer]
	if own == nil {
		own = &noted{saved: map[string]savedHour{}}
		l.noted[payer] = own
	}
	own.state.Note(now, pace.Note{Resource: n.Resource, Limit: n.Limit, Remaining: n.Remaining, Reset: n.Reset})
	if n.Resource == "" {
		return true // it blocks
	}
	was, known := own.saved[n.Resource]
	if n.Blocked <= 0 && known && n.Reset.Equal(was.Reset) && n.Remaining > 0 && now.Sub(was.at) < saveEvery &&
		(was.Remaining-n.Remaining)*saveShare < n.Limit {
		return false
	}
	own.saved[n.Resource] = savedHour{pace.Hour{Limit: n.Limit, Remaining: n.Remaining, Reset: n.Reset}, now}
	return true
}

// due tells whether it is time to forget old rows.
func (l *limits) due(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.tidy) < time.Hour {
		return false
	}
	l.tidy = now
	return true
}
