package ci

import (
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
)

// Objects are those that rows name at a time: the output of a check goes before its row does.
func Objects(tx *db.Tx, at time.Time) (out []blob.Named, err error) {
	rows, err := allKept.All(tx, at)
	for _, r := range rows {
		out = append(out, blob.Named{Key: r.key(), Size: -1})
	}
	return out, err
}
