package backlog

import (
	"time"

	"yardmaster/internal/db"
)

// job is an import that was taken up.
type job struct {
	ID          string
	AccountID   string
	RepoID      string
	RequestedBy string
	Tries       int64
}

var (
	repoByName = db.Q[Repo](`SELECT id, host, owner, name, enabled FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3`)
	repoByID   = db.Q[Repo](`SELECT id, host, owner, name, enabled FROM repos WHERE account_id = $1 AND id = $2`)
	inFlight   = db.Q[BacklogImport](`SELECT id AS job_id, state FROM backlog_imports WHERE account_id = $1 AND repo_id = $2 AND state IN ('queued', 'running')`)
	insert     = db.S(`INSERT INTO backlog_imports (id, account_id, repo_id, state, requested_by, due_at, created_at)
		VALUES ($1, $2, $3, 'queued', $4, $5, $5) ON CONFLICT DO NOTHING`)
	takeDue = db.Q[job](`UPDATE backlog_imports SET state = 'running', claim = $2, due_at = $3, tries = tries + 1
		WHERE id IN (SELECT id FROM backlog_imports WHERE state IN ('queued', 'running') AND due_at <= $1 ORDER BY due_at LIMIT 4)
			AND state IN ('queued', 'running') AND due_at <= $1
		RETURNING id, account_id, repo_id, requested_by, tries`)
	renew  = db.S(`UPDATE backlog_imports SET due_at = $4 WHERE account_id = $1 AND id = $2 AND claim = $3 AND state = 'running'`)
	retry  = db.S(`UPDATE backlog_imports SET due_at = $4, claim = NULL WHERE account_id = $1 AND id = $2 AND claim = $3 AND state = 'running'`)
	finish = db.S(`UPDATE backlog_imports SET state = $4, finished_at = $5
		WHERE account_id = $1 AND id = $2 AND claim = $3 AND state = 'running'`)
	credit = db.S(`UPDATE backlog_imports SET filed = filed + $4 WHERE account_id = $1 AND id = $2 AND claim = $3`)
	filed  = db.Q[int64](`SELECT filed FROM backlog_imports WHERE account_id = $1 AND id = $2`)
)

// longestWait is the longest that an import waits for its next try.
const longestWait = 30 * time.Minute

var pullIn = db.S(`UPDATE backlog_imports SET due_at = $1 WHERE state IN ('queued', 'running') AND due_at > $2`)

// ClockSetBack makes imports due that would wait for longer than longestWait.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Now, tx.Now.Add(longestWait))
	return err
}
