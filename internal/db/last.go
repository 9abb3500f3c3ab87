package db

// Last is a step that a transaction takes at its end, just before it commits,
// once and with everything that was handed to it. It is for what must be done
// late, such as taking a lock that every transaction wants: held from there to
// the commit only, and taken after all others, it cannot close a circle.
// Declare it as a package-level variable; steps run in the order of their
// first Add.
type Last[T any] struct{ run func(*Tx, []T) error }

// AtEnd declares a step.
func AtEnd[T any](run func(tx *Tx, all []T) error) *Last[T] { return &Last[T]{run} }

// Add hands v to the step at the end of tx. After a rollback nothing happens.
func (l *Last[T]) Add(tx *Tx, v T) {
	if b, ok := tx.last[l].(*batch[T]); ok {
		b.all = append(b.all, v)
		return
	}
	b := &batch[T]{[]T{v}}
	if tx.last == nil {
		tx.last = map[any]any{}
	}
	tx.last[l] = b
	tx.steps = append(tx.steps, func() error { return l.run(tx, b.all) })
}

type batch[T any] struct{ all []T }

// finish takes the steps that are owed.
func (tx *Tx) finish() error {
	for len(tx.steps) > 0 {
		step := tx.steps[0]
		tx.steps, tx.last = tx.steps[1:], nil
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
