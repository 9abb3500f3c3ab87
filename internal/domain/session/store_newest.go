package session

import "yardmaster/internal/db"

var newestIn = db.Q[string](`SELECT id FROM sessions WHERE account_id = $1 AND repo_id = $2 ORDER BY started_at DESC, id DESC LIMIT $3`)

// NewestIn lists the ids of the newest sessions of a repository of tx.Account, newest first
// and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return newestIn.All(tx, tx.Account, repoID, limit)
}
