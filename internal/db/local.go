package db

// Local is a value that exists once for each database handle, empty at first. It is
// for state of one running program rather than of the process, because a test
// process runs several programs. Declare it as a package-level variable.
type Local[T any] struct{ _ byte } // not empty: each declaration has an address of its own

// Of returns the value of d. The caller has to guard its contents against
// concurrent use.
func (l *Local[T]) Of(d *DB) *T {
	if v, ok := d.local.Load(l); ok {
		return v.(*T)
	}
	v, _ := d.local.LoadOrStore(l, new(T))
	return v.(*T)
}

// OfTx returns the value of the database of tx.
func (l *Local[T]) OfTx(tx *Tx) *T { return l.Of(tx.db) }
