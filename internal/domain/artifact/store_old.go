package artifact

import (
	"time"

	"yardmaster/internal/db"
)

var old = db.Q[int64](`SELECT COUNT(*) AS n FROM artifacts WHERE deleted_at IS NULL AND expires_at <= $1`)

// Old counts the artifacts whose time is over at a time: those that go next.
func Old(tx *db.Tx, at time.Time) (int64, error) { return old.One(tx, at) }
