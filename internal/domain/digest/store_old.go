package digest

import (
	"time"

	"yardmaster/internal/db"
)

var old = db.Q[int64](`SELECT COUNT(*) AS n FROM digests WHERE created_at < $1`)

// Old counts the digests that are older than a time: those that go next.
func Old(tx *db.Tx, at time.Time) (int64, error) { return old.One(tx, at) }
