package clock

import (
	"time"

	"yardmaster/internal/db"
)

var leases = db.S(`UPDATE runs SET lease_expires_at = $1 WHERE ended_at IS NULL AND lease_expires_at > $2`)

// waits end at $1 if they would last beyond $2: what waits, and the longest
// that it may. To end one early is no harm: it is a try that comes sooner.
var waits = []struct {
	longest time.Duration
	end     db.Stmt
}{
	{0, db.S(`UPDATE boxes SET last_beat_at = $1 WHERE last_beat_at > $2`)},
	{0, db.S(`UPDATE idempotency_keys SET created_at = $1 WHERE status = 0 AND created_at > $2`)},
	{2 * time.Minute, db.S(`UPDATE pull_actions SET due_at = $1 WHERE state = 'approved' AND due_at > $2`)},
	{30 * time.Minute, db.S(`UPDATE tasks SET not_before = $1 WHERE status = 'pending' AND not_before > 0 AND not_before > $2`)},
	{30 * time.Minute, db.S(`UPDATE asks SET due_at = $1 WHERE state = 'pending' AND due_at > $2`)},
	{30 * time.Minute, db.S(`UPDATE backlog_imports SET due_at = $1 WHERE state IN ('queued', 'running') AND due_at > $2`)},
	{30 * time.Minute, db.S(`UPDATE mails SET due_at = $1 WHERE state = 'due' AND due_at > $2`)},
}
