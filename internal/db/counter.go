package db

import "iter"

// Counter keeps sums that many transactions change, such as the length of a queue.
// A transaction adds its changes at any time, and they are written once, at its end:
// the rows that hold the sums are locked last, and only until the commit. Until then
// the rows do not show them. Who reads the rows asks Added for the changes of its own
// transaction, and Unwritten for those of others that come before it. Declare a
// Counter as a package-level variable.
type Counter[T any] struct{ last *Last[T] }

// CountAtEnd declares a counter whose changes are written by the function write, in a
// step of the turn. A change must not depend on the transaction that write is given,
// see Last.
func CountAtEnd[T any](turn Turn, write func(tx *Tx, changes []T) error) *Counter[T] {
	return &Counter[T]{AtEnd(turn, write)}
}

// Add adds a change, to be written at the end of tx. After a rollback it is not.
func (c *Counter[T]) Add(tx *Tx, change T) { c.last.Add(tx, change) }

// Added returns the changes that tx has added so far, in order.
func (c *Counter[T]) Added(tx *Tx) []T {
	if b := find(tx.steps, c.last); b != nil {
		return b.all
	}
	return nil
}

// Unwritten yields the changes of other transactions that tx counts with and that no
// row shows yet, in order. There are none on PostgreSQL. On SQLite several
// transactions share a commit: tx sees the rows of those before it, and their changes
// of counters are written with its own.
func (c *Counter[T]) Unwritten(tx *Tx) iter.Seq[T] {
	return func(yield func(T) bool) {
		g, ok := tx.q.(sharing)
		if !ok {
			return
		}
		b := find(g.ahead(), c.last)
		if b == nil {
			return
		}
		for _, change := range b.all {
			if !yield(change) {
				return
			}
		}
	}
}
