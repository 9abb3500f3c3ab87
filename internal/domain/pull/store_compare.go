package pull

import "yardmaster/internal/db"

// unended are the pull requests that have not ended.
var unended = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND state IN ('opening', 'open') ORDER BY id`)
