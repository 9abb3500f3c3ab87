package delivery

import (
	"time"

	"yardmaster/internal/db"
)

var old = db.Q[int64](`SELECT COUNT(*) AS n FROM host_deliveries WHERE received_at < $1`)

// Old counts the deliveries that are older than a time: those that go next.
func Old(tx *db.Tx, at time.Time) (int64, error) { return old.One(tx, at) }
