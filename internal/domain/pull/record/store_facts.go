package record

import (
	"yardmaster/internal/db"
)

var (
	// LastAsked is what was last asked or ordered about the merge of a head; the open one
	// goes before those that have ended.
	LastAsked = db.Q[Action](`SELECT ` + ActionColumns + ` FROM pull_actions WHERE pr_id = $1 AND kind = 'merge' AND head_sha = $2
		AND state IN ('pending', 'approved', 'skipped', 'expired', 'failed') AND stale_why <> 'taken_back'
		ORDER BY CASE WHEN state IN ('pending', 'approved') THEN 0 ELSE 1 END, requested_at DESC, id DESC LIMIT 1`)
	// mayCarryYes tells whether a yes of a person is among what a new head may take over.
	mayCarryYes = db.Q[bool](`SELECT EXISTS (SELECT 1` + aside + ` AND a.decided_by IS NOT NULL)`)
)
