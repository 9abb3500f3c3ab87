package notification

import (
	"time"

	"yardmaster/internal/db"
)

var old = db.Q[int64](`SELECT COUNT(*) AS n FROM notifications WHERE updated_at < $1`)

// Old counts the notifications that are older than a time, after their last change: those that go next.
func Old(tx *db.Tx, at time.Time) (int64, error) { return old.One(tx, at) }
