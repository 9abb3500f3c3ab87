package record

import (
	"yardmaster/internal/db"
)

// Unended are the pull requests that have not ended.
var Unended = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND state IN ('opening', 'open') ORDER BY id`)
