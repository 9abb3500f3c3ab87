package db

import (
	"cmp"
	"slices"
)

// Last is a step that a transaction runs once at its end, just before it commits,
// with all values that were added to it. It is for work that must be late, such as
// taking a lock that every transaction needs: if the lock is taken after all others
// and held only until the commit, it cannot cause a deadlock. On SQLite the
// transactions of one commit run the step together, with the values of all of them;
// so a value must not depend on the step's own transaction, whose Now and Account
// mean nothing. Declare a Last as a package-level variable.
type Last[T any] struct {
	turn Turn
	run  func(*Tx, []T) error
}

// Turn is the position of a step. All transactions run their steps in the order of
// the turns, and so take the locks of the steps in that order. A step may add
// values to a step of its own turn or of a later one.
type Turn int

// The turns, in order.
const (
	First Turn = iota
	Second
	Third
	Fourth
	Fifth
)

// AtEnd declares a step.
func AtEnd[T any](turn Turn, run func(tx *Tx, all []T) error) *Last[T] { return &Last[T]{turn, run} }

// Add adds v to the step at the end of tx. After a rollback the step does not run.
func (l *Last[T]) Add(tx *Tx, v T) {
	if b := find(tx.steps, l); b != nil {
		b.all = append(b.all, v)
		return
	}
	tx.steps = append(tx.steps, &batch[T]{l, []T{v}})
}

// step is a Last with the values of a transaction.
type step interface {
	turn() Turn
	take(*Tx) error
	// join adds the values of another step if both belong to the same Last, and
	// tells whether they do.
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

// finish runs the steps of the transaction.
func (tx *Tx) finish() error {
	for len(tx.steps) > 0 {
		s := slices.MinFunc(tx.steps, func(a, b step) int { return cmp.Compare(a.turn(), b.turn()) })
		tx.steps = slices.DeleteFunc(tx.steps, func(o step) bool { return o == s })
		if err := s.take(tx); err != nil {
			return err
		}
	}
	return nil
}
