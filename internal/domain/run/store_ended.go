package run

import (
	"time"

	"yardmaster/internal/db"
)

// Over is how a run ended.
type Over struct {
	BoxID     string
	CreatedAt time.Time
	Failed    bool // it failed, or was lost
}

var endedSince = db.Q[Over](`SELECT box_id, created_at, COALESCE(outcome, '') IN ('failed', 'lost') AS failed FROM runs
	WHERE account_id = $1 AND ended_at >= $2 AND ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT 5000`)

// EndedSince answers the runs of tx.Account that ended at a time or later, at most
// the newest 5,000.
func EndedSince(tx *db.Tx, since time.Time) ([]Over, error) {
	return endedSince.All(tx, tx.Account, since)
}
