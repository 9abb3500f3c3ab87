package db

import (
	"cmp"
	"slices"
)

// Last is a step that a transaction takes at its end, just before it commits,
// once and with everything that was handed to it. It is for what must be done
// late, such as taking a lock that every transaction wants: held from there to
// the commit only, and taken after all others, it cannot close a circle.
// On SQLite the transactions of one commit take the step together, with what
// was handed to it in all of them; so nothing in a value may be taken from the
// step's own transaction, and neither its Now nor its Account mean anything.
// Declare it as a package-level variable.
type Last[T any] struct {
	turn Turn
	run  func(*Tx, []T) error
}

// Turn says when a step is taken: all transactions take their steps in the
// order of the turns, and so the locks that those take. A step may hand
// something to its own turn or to a later one.
type Turn int

// The turns.
const (
	First Turn = iota
	Second
	Third
	Fourth
)

// AtEnd declares a step.
func AtEnd[T any](turn Turn, run func(tx *Tx, all []T) error) *Last[T] { return &Last[T]{turn, run} }

// Add hands v to the step at the end of tx. After a rollback nothing happens.
func (l *Last[T]) Add(tx *Tx, v T) {
	if b := find(tx.owed, l); b != nil {
		b.all = append(b.all, v)
		return
	}
	tx.owed = append(tx.owed, &batch[T]{l, []T{v}})
}

// Added is what was handed to the step in tx so far.
func (l *Last[T]) Added(tx *Tx) []T {
	if b := find(tx.owed, l); b != nil {
		return b.all
	}
	return nil
}

// Ahead calls f with what was handed to the step by the transactions that come
// before tx in its commit, and is done when it returns: tx sees what they
// wrote, and this is what they have yet to write.
func (l *Last[T]) Ahead(tx *Tx, f func(T)) {
	g, ok := tx.q.(sharing)
	if !ok {
		return
	}
	if b := find(g.ahead(), l); b != nil {
		for _, v := range b.all {
			f(v)
		}
	}
}

// step is what a transaction owes to one Last.
type step interface {
	turn() Turn
	take(*Tx) error
	// join adds what another transaction owes to the same Last, and answers
	// whether it is the same.
	join(step) bool
}

type batch[T any] struct {
	last *Last[T]
	all  []T
}

func (b *batch[T]) turn() Turn { return b.last.turn }

func (b *batch[T]) take(tx *Tx) error { return b.last.run(tx, b.all) }

func (b *batch[T]) join(s step) bool {
	o, ok := s.(*batch[T])
	if !ok || o.last != b.last {
		return false
	}
	b.all = append(b.all, o.all...)
	return true
}

func find[T any](steps []step, l *Last[T]) *batch[T] {
	for _, s := range steps {
		if b, ok := s.(*batch[T]); ok && b.last == l {
			return b
		}
	}
	return nil
}

// join adds the steps of more to those of all.
func join(all, more []step) []step {
next:
	for _, s := range more {
		for _, have := range all {
			if have.join(s) {
				continue next
			}
		}
		all = append(all, s)
	}
	return all
}

// finish takes the steps that are owed.
func (tx *Tx) finish() error {
	for len(tx.owed) > 0 {
		s := slices.MinFunc(tx.owed, func(a, b step) int { return cmp.Compare(a.turn(), b.turn()) })
		tx.owed = slices.DeleteFunc(tx.owed, func(o step) bool { return o == s })
		if err := s.take(tx); err != nil {
			return err
		}
	}
	return nil
}
