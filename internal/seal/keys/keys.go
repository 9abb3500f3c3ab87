// Package keys is the life of the master keys: where they come from, what in
// the database is sealed with which of them, and how all of it moves to a new
// one. What is sealed, and for what purpose, each owner says itself with a
// Column.
package keys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/seal"
)

// Row is one sealed value.
type Row struct {
	Key     string // of its row, unique in the column
	Account string // that it belongs to; empty: nobody's
	Sealed  string
}

// Held is how many values are sealed with a key.
type Held struct {
	KeyID string // empty: they do not say
	N     int64
}

// Column is a place in the database where sealed values lie.
type Column struct {
	Table, Name string
	Count       db.Query[Held]
	// List answers the values behind a key, at most limit, in the order of keys.
	List func(tx *db.Tx, after string, limit int) ([]Row, error)
	// Put replaces the value of a row if that is still was. It answers how many
	// rows it changed, 0 or 1.
	Put     func(tx *db.Tx, key, was, is string) (int64, error)
	Purpose func(Row) string // what a value was sealed for
}

// Listing is a Column's List of a table whose key is one column: the query has
// the key before as $1 and the limit as $2.
func Listing(q db.Query[Row]) func(tx *db.Tx, after string, limit int) ([]Row, error) {
	return func(tx *db.Tx, after string, limit int) ([]Row, error) { return q.All(tx, after, limit) }
}

// Replacing is a Column's Put of a table whose key is one column: the statement
// has the key as $1, the value that there was as $2 and the new one as $3.
func Replacing(s db.Stmt) func(tx *db.Tx, key, was, is string) (int64, error) {
	return func(tx *db.Tx, key, was, is string) (int64, error) { return s.Exec(tx, key, was, is) }
}

func (c Column) String() string { return c.Table + "." + c.Name }

// batch is how many values are read, or sealed anew, in one transaction.
const batch = 200

// Unopened are the values that no key opens, or that name none.
const Unopened = ""

// Census is how many values each column holds under each key, by the column's
// name and the key's id. Values that name no key are tried, so that theirs is
// known; with those no key opens, they are under Unopened.
type Census map[string]map[string]int64

// Under is how many values are sealed with a key.
func (c Census) Under(keyID string) (n int64) {
	for _, held := range c {
		n += held[keyID]
	}
	return n
}

// Keys are the ids of all keys that hold values, in order.
func (c Census) Keys() []string {
	ids := map[string]bool{}
	for _, held := range c {
		for id, n := range held {
			ids[id] = ids[id] || n > 0
		}
	}
	maps.DeleteFunc(ids, func(_ string, any bool) bool { return !any })
	return slices.Sorted(maps.Keys(ids))
}

// Outside is how many values are under keys other than those of the ring.
func (c Census) Outside(ring *seal.Keyring) (n int64) {
	for _, id := range c.Keys() {
		if ring == nil || !slices.Contains(ring.IDs(), id) {
			n += c.Under(id)
		}
	}
	return n
}

// Total is how many values there are.
func (c Census) Total() (n int64) {
	for _, id := range c.Keys() {
		n += c.Under(id)
	}
	return n
}

// Take counts. A nil ring opens nothing.
func Take(ctx context.Context, d *db.DB, ring *seal.Keyring, columns []Column) (Census, error) {
	out := Census{}
	for _, c := range columns {
		var all []Held
		err := d.Read(ctx, func(tx *db.Tx) (err error) {
			all, err = c.Count.All(tx)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("count the values of %s: %w", c, err)
		}
		held := map[string]int64{}
		for _, h := range all {
			held[h.KeyID] = h.N
		}
		if held[Unopened] > 0 && ring != nil {
			if held, err = c.tried(ctx, d, ring); err != nil {
				return nil, fmt.Errorf("count the values of %s: %w", c, err)
			}
		}
		out[c.String()] = held
	}
	return out, nil
}

// tried counts by opening what names no key.
func (c Column) tried(ctx context.Context, d *db.DB, ring *seal.Keyring) (map[string]int64, error) {
	held := map[string]int64{}
	after := ""
	for {
		var rows []Row
		err := d.Read(ctx, func(tx *db.Tx) (err error) {
			rows, err = c.List(tx, after, batch)
			return err
		})
		if err != nil || len(rows) == 0 {
			return held, err
		}
		for _, r := range rows {
			id := seal.KeyOf(r.Sealed)
			if id == "" {
				if _, by, err := ring.UnsealWith(c.Purpose(r), r.Sealed); err == nil {
					id = by
				}
			}
			held[id]++
		}
		after = rows[len(rows)-1].Key
	}
}

// Stuck is a value that could not be sealed anew.
type Stuck struct {
	Column  string
	Row     string // key of its row
	Account string
	Err     error
}

// Rotate seals every value that another key has sealed with the first key of
// the ring, some hundred in a transaction, and calls moved after each of them.
// It may be cut off at any moment and called again, and beside servers that
// have all keys of the ring: a value that one of them changes meanwhile stays
// as they make it. What no key opens is left as it is, and answered.
func Rotate(ctx context.Context, d *db.DB, ring *seal.Keyring, columns []Column, moved func(column string, values int)) ([]Stuck, error) {
	var stuck []Stuck
	for _, c := range columns {
		for after, more := "", true; more; {
			var n int
			var bad []Stuck
			last := after
			err := d.Write(ctx, func(tx *db.Tx) error {
				n, bad, more = 0, nil, false
				rows, err := c.List(tx, after, batch)
				if err != nil {
					return err
				}
				for _, r := range rows {
					more, last = true, r.Key
					if seal.KeyOf(r.Sealed) == ring.ID() {
						continue
					}
					plain, err := ring.Unseal(c.Purpose(r), r.Sealed)
					if err != nil {
						bad = append(bad, Stuck{c.String(), r.Key, r.Account, err})
						continue
					}
					changed, err := c.Put(tx, r.Key, r.Sealed, ring.Seal(c.Purpose(r), plain))
					if err != nil {
						return err
					}
					n += int(changed)
				}
				return nil
			})
			if err != nil {
				return stuck, fmt.Errorf("seal the values of %s anew: %w", c, err)
			}
			stuck, after = append(stuck, bad...), last
			if n > 0 {
				moved(c.String(), n)
			}
		}
	}
	return stuck, nil
}

// Opens fails unless what the database holds was sealed with a key of the ring,
// some of it at least: with a wrong key nothing of it would be of use, and what
// is sealed from now on would be lost to the right one. The error names the
// keys that are wanted.
func Opens(ring *seal.Keyring, c Census) error {
	if total := c.Total(); total == 0 || c.Outside(ring) < total {
		return nil
	}
	return errors.New(Wanted(c))
}

// Wanted says which keys the values of a database are sealed with.
func Wanted(c Census) string {
	var named []string
	for _, id := range c.Keys() {
		if id != Unopened {
			named = append(named, id)
		}
	}
	switch len(named) {
	case 0:
		return "the database is sealed with a master key from before keys had ids"
	case 1:
		return "the database is sealed with the master key " + named[0]
	}
	return "the database is sealed with the master keys " + strings.Join(named, ", ")
}
