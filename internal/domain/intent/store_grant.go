package intent

import "yardmaster/internal/db"

var (
	lastError = db.Q[string](`SELECT COALESCE(error, '') AS error FROM host_intents WHERE id = $1`)
	// retryNow leaves those alone that wait for a limit of the host to end.
	retryNow = db.S(`UPDATE host_intents SET due_at = $2
		WHERE repo_id = $1 AND ended_at IS NULL AND state = 'due' AND due_at > $2 AND NOT limited`)
)
