// Package meta stores single texts of an installation, such as its setup token and
// the keys of its bus, by name. Each name belongs to one package, which passes it.
package meta

import (
	"yardmaster/internal/db"
	"yardmaster/internal/seal/keys"
)

// The names of sealed values, each under a purpose of the same name.
const (
	BusKeys   = "bus-keys"
	BusCA     = "bus-ca"
	NodeCA    = "node-ca"
	ClientKey = "client-key"
	PushKeys  = "push-keys"
)

var (
	read    = db.Q[string](`SELECT value FROM meta WHERE key = $1`)
	insert  = db.S(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`)
	replace = db.S(`UPDATE meta SET value = $3 WHERE key = $1 AND value = $2`)
	claim   = db.SWith[claimArgs](`INSERT INTO meta (key, value)
		VALUES (:key, :value)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value
		WHERE meta.value <= :at_most OR meta.value > :above`)
)

// claimArgs are the parameters of claim.
type claimArgs struct {
	Key, Value, AtMost, Above string
}

// Read returns the value of a name and whether there is one.
func Read(tx *db.Tx, name string) (value string, ok bool, err error) { return read.Maybe(tx, name) }

// Add sets the value of a name that has none; an existing value stays.
func Add(tx *db.Tx, name, value string) error {
	_, err := insert.Exec(tx, name, value)
	return err
}

// Replace changes the value of a name from was to value. It returns false if the
// value is not was.
func Replace(tx *db.Tx, name, was, value string) (bool, error) {
	n, err := replace.Exec(tx, name, was, value)
	return n > 0, err
}

// Lock locks a name until the transaction ends. Other transactions that lock it
// wait.
func Lock(tx *db.Tx, name string) error {
	if err := Add(tx, name, ""); err != nil {
		return err
	}
	_, err := read.ForUpdate().One(tx, name)
	return err
}

// Claim sets the value of a name that has no value, or one that is at most atMost
// or greater than above, in the order of text. It returns false if the value stays.
func Claim(tx *db.Tx, name, value, atMost, above string) (bool, error) {
	n, err := claim.Exec(tx, claimArgs{Key: name, Value: value, AtMost: atMost, Above: above})
	return n > 0, err
}

const isSealed = `key IN ('` + BusKeys + `', '` + BusCA + `', '` + NodeCA + `', '` + ClientKey + `', '` + PushKeys + `')`

// Sealed are the sealed values of the installation.
var Sealed = keys.Column{
	Table: "meta", Name: "value",
	Count: db.Q[keys.Held](keys.Tally + `(SELECT value AS sealed FROM meta WHERE ` + isSealed + `) AS ours GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT key, '' AS account, value AS sealed FROM meta
		WHERE key > $1 AND ` + isSealed + ` ORDER BY key LIMIT $2`)),
	Put:     keys.Replacing(replace),
	Purpose: func(r keys.Row) string { return r.Key },
}
