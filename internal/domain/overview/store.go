package overview

import "yardmaster/internal/db"

type burnRow struct {
	Micros             *int64
	Sessions, Unpriced int64
}

var (
	selectCounts = db.Q[Counts](`SELECT
		(SELECT COUNT(*) FROM repos WHERE account_id = $1 AND enabled) AS repos,
		(SELECT COUNT(*) FROM pulls WHERE account_id = $1 AND state = 'open') AS open,
		(SELECT COUNT(*) FROM pulls WHERE account_id = $1 AND merged_at >= $2) AS merged,
		(SELECT COUNT(*) FROM pull_actions WHERE account_id = $1 AND state = 'pending') AS approvals`)
	selectBurn = db.Q[burnRow](`SELECT CAST(SUM(cost_micros) AS BIGINT) AS micros, COUNT(DISTINCT session_id) AS sessions,
		COUNT(DISTINCT CASE WHEN unpriced > 0 THEN session_id END) AS unpriced FROM spend_minutes WHERE account_id = $1 AND minute >= $2`)
)
