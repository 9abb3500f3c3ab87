package run

import (
	"time"

	"yardmaster/internal/db"
)

// standing is the condition of the events that stay: what a report shows, and the last one.
const standing = `kind IN ('artifact.stored', 'ask.filed', 'blocker.declared', 'action.proposed', 'page.proposed', 'run.finished')`

type overRow struct {
	ID, AccountID string
	CommittedSeq  int64
}

var (
	selectOver = db.Q[overRow](`SELECT id, account_id, committed_seq FROM runs
		WHERE ended_at < $1 AND ended_at IS NOT NULL AND events_reaped_at IS NULL ORDER BY ended_at LIMIT 50`)
	anyOver = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM runs WHERE ended_at < $1 AND ended_at IS NOT NULL AND events_reaped_at IS NULL)`)
	// markReaped changes nothing if another node has removed the events.
	markReaped   = db.S(`UPDATE runs SET events_reaped_at = $2 WHERE id = $1 AND events_reaped_at IS NULL`)
	removeEvents = db.S(`DELETE FROM run_events WHERE run_id = $1 AND NOT ` + standing)
	countOld     = db.Q[int64](`SELECT COUNT(*) AS n FROM runs r JOIN run_events e ON e.run_id = r.id
		WHERE r.ended_at < $1 AND r.ended_at IS NOT NULL AND r.events_reaped_at IS NULL AND NOT e.` + standing)
	reapedAt = db.Q[*time.Time](`SELECT events_reaped_at FROM runs WHERE id = $1`)
)
