package nodes

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/db"
)

const (
	// patient is how long after it has asked a node counts as one that waits for a place.
	patient = time.Second
	// longestCall is how long the places of a node that has stopped by itself count on: it ends
	// what it has begun.
	longestCall = 15 * time.Minute
)

// place is what this node holds of one name. The mutex is held during a transaction, so that the
// row says in the end what the node holds.
type place struct {
	mu    sync.Mutex
	held  int64
	stale bool // the row may say something else
}

type placeRow struct {
	NodeID             string
	Busy, Since, Asked int64
}

func (r *Registry) place(name string) *place {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.places == nil {
		r.places = map[string]*place{}
	}
	p := r.places[name]
	if p == nil {
		p = new(place)
		r.places[name] = p
	}
	return p
}

// Take takes one of the places of a name, of which all nodes together hold the most at once. It
// answers false if none is free, or if the free ones are for nodes that have waited longer: a
// node waits while it asks again at least once a second. The caller gives it back with Free.
func (r *Registry) Take(ctx context.Context, name string, most int64) (ok bool, err error) {
	p := r.place(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	err = r.DB.Write(ctx, func(tx *db.Tx) error {
		ok = false
		if err := alone(tx, name); err != nil {
			return err
		}
		now, err := clock(tx)
		if err != nil {
			return err
		}
		rows, err := placesOf.All(tx, name, now-(silence*r.Every).Microseconds(), now-longestCall.Microseconds())
		if err != nil {
			return err
		}
		own := placeRow{NodeID: r.Self.ID}
		free := most - p.held
		for _, row := range rows {
			if row.NodeID == r.Self.ID {
				own = row
			} else {
				free -= row.Busy
			}
		}
		if own.Since == 0 || own.Asked <= now-patient.Microseconds() {
			own.Since = now
		}
		for _, row := range rows {
			if row.NodeID != r.Self.ID && row.Since > 0 && row.Since < own.Since && row.Asked > now-patient.Microseconds() {
				free--
			}
		}
		set := setPlaceArgs{Name: name, NodeID: r.Self.ID, Boot: r.boot, Busy: p.held, Since: own.Since, Asked: now}
		if ok = free > 0; ok {
			set.Busy, set.Since = p.held+1, 0
		}
		_, err = setPlace.Exec(tx, set)
		return err
	})
	switch p.stale = err != nil; {
	case err != nil:
		return false, err
	case ok:
		p.held++
	}
	return ok, nil
}

// Free gives a place back. It waits for the database; if that does not answer, the place is free
// with the next beat of the node.
func (r *Registry) Free(ctx context.Context, name string) {
	p := r.place(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held--
	err := r.DB.Write(ctx, func(tx *db.Tx) error { return r.keep(tx, name, p) })
	if p.stale = err != nil; p.stale {
		r.Logger.WarnContext(ctx, "a place that the nodes share is given back later", "name", name, slog.Any("error", err))
	}
}

// keep writes down what the node holds. The caller has locked p.
func (r *Registry) keep(tx *db.Tx, name string, p *place) error {
	_, err := keepPlace.Exec(tx, keepPlaceArgs{Name: name, NodeID: r.Self.ID, Boot: r.boot, Busy: p.held})
	return err
}

// mend writes down what could not be written before.
func (r *Registry) mend(ctx context.Context) {
	r.mu.Lock()
	var names []string
	for name := range r.places {
		names = append(names, name)
	}
	r.mu.Unlock()
	for _, name := range names {
		p := r.place(name)
		if !p.mu.TryLock() {
			continue // it is being written
		}
		if p.stale {
			p.stale = r.DB.Write(ctx, func(tx *db.Tx) error { return r.keep(tx, name, p) }) != nil
		}
		p.mu.Unlock()
	}
}
