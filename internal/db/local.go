package db

// Local is a value that every database handle has one of, empty at first: what
// belongs to one running program and not to the process, in which tests run
// several. Declare it as a package-level variable.
type Local[T any] struct{ _ byte } // not empty: each declaration has an address of its own

// Of returns the value of d. The caller guards what is in it against use at
// the same time.
func (l *Local[T]) Of(d *DB) *T {
	if v, ok := d.local.Load(l); ok {
		return v.(*T)
	}
	v, _ := d.local.LoadOrStore(l, new(T))
	return v.(*T)
}

// OfTx returns the value of the database that tx is a transaction of.
func (l *Local[T]) OfTx(tx *Tx) *T { return l.Of(tx.db) }
