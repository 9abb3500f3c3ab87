package due

import (
	"cmp"
	"slices"
	"strings"

	"yardmaster/internal/db"
)

// Entries is the way into a queue, in the transactions of the domain that owns it. Add, Hurry
// and Drop take effect at the end of the transaction, which fails if they do.
type Entries struct {
	name string
	k    *Kernel
}

// Add has a key worked on: at once after the commit, or when e says. See the package comment
// for a key that is there already. It does not hurry one that waits after a failed try. Drop
// before it, in the same transaction, puts a wait of its own in the place of another one.
func (q Entries) Add(tx *db.Tx, key string, e Entry) {
	now := q.k.now(tx)
	a := addArgs{Queue: q.name, Key: key, Lane: lane(e), State: Ready, DueAt: db.Micros(now), SetAt: db.Micros(now)}
	switch {
	case !e.At.IsZero():
		a.State, a.DueAt, a.SetAt = Waits, db.Micros(e.At), 0
	case e.After > 0:
		a.State, a.DueAt = Waits, db.Micros(now.Add(e.After))
	}
	q.change(tx, key, func(tx *db.Tx) error { return add(tx, a) })
	q.k.notify(tx)
}

// Hurry makes an entry due that waits or was set aside, and forgets its tries. One that is
// worked on is worked on once more.
func (q Entries) Hurry(tx *db.Tx, key string) {
	now := db.Micros(q.k.now(tx))
	q.change(tx, key, func(tx *db.Tx) error { _, err := hurry.Exec(tx, q.name, key, now); return err })
	q.k.notify(tx)
}

// Drop ends an entry. A node that works on it loses it, and records nothing.
func (q Entries) Drop(tx *db.Tx, key string) {
	q.change(tx, key, func(tx *db.Tx) error { _, err := drop.Exec(tx, q.name, key); return err })
}

// State answers what is known of an entry; false: there is none, so nothing is to be done.
func (q Entries) State(tx *db.Tx, key string) (State, bool, error) {
	return look.Maybe(tx, q.name, key)
}

// States is State for many keys. Those without an entry are left out.
func (q Entries) States(tx *db.Tx, all []string) (map[string]State, error) {
	return lookMany(tx, q.name, all)
}

func (q Entries) change(tx *db.Tx, key string, run func(*db.Tx) error) {
	changes.Add(tx, change{q.name, key, 1, run})
}

// change is a change of an entry that waits for the end of its transaction.
type change struct {
	queue, key string
	turn       int // 0: the outcome of work on it; 1: what a domain wants, also in what it records
	run        func(*db.Tx) error
}

// changes are made last of all and in one order, so that the rows of the table never take
// part in a deadlock.
var changes = db.AtEnd(db.Fifth, func(tx *db.Tx, all []change) error {
	slices.SortStableFunc(all, func(a, b change) int {
		return cmp.Or(strings.Compare(a.queue, b.queue), strings.Compare(a.key, b.key), cmp.Compare(a.turn, b.turn))
	})
	for _, c := range all {
		if err := c.run(tx); err != nil {
			return err
		}
	}
	return nil
})

// lane is the rank and the account as one text that sorts by both.
func lane(e Entry) string { return string(rune('0'+min(max(e.Rank, 0), 9))) + e.Account }
