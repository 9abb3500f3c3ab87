package ci

import "yardmaster/internal/db"

type row struct {
	ID     string
	RepoID string
	PRID   string `db:"pr_id"`
	SHA    string `db:"sha"`
}

type lostRow struct {
	AccountID string
	TaskID    string
	Why       string
	Cancelled bool
}

var (
	insert = db.SWith[insertArgs](`INSERT INTO ci_runs (id, account_id, repo_id, pr_id, sha, command, status, task_id, created_at)
		VALUES (:id, :account_id, :repo_id, :pr_id, :sha, :command, :status, :task_id, :created_at)
		ON CONFLICT (pr_id, sha)
		WHERE pr_id IS NOT NULL DO UPDATE SET command = excluded.command, status = excluded.status,
		task_id = excluded.task_id, created_at = excluded.created_at, run_id = NULL, box_id = NULL, exit_code = NULL,
		output = '', started_at = NULL, finished_at = NULL`)
	run   = db.S(`UPDATE ci_runs SET status = 'running', started_at = $3 WHERE account_id = $1 AND task_id = $2 AND finished_at IS NULL`)
	queue = db.S(`UPDATE ci_runs SET status = 'queued', started_at = NULL
		WHERE account_id = $1 AND task_id = $2 AND finished_at IS NULL AND status = 'running'`)
	byTask = db.Q[row](`SELECT id, repo_id, COALESCE(pr_id, '') AS pr_id, sha FROM ci_runs WHERE account_id = $1 AND task_id = $2`)
	lost   = db.Q[lostRow](`SELECT c.account_id, c.task_id, COALESCE(t.failure, t.status) AS why, t.status = 'cancelled' AS cancelled
		FROM ci_runs c JOIN tasks t ON t.id = c.task_id
		WHERE c.finished_at IS NULL AND t.status IN ('failed', 'cancelled') LIMIT 50`)
	// end leaves a check alone that has ended, unless a run has brought a result: the
	// task of a lost check may have been run again.
	end = db.SWith[endArgs](`UPDATE ci_runs SET status = :status, run_id = :run_id, box_id = :box_id,
		exit_code = :exit_code, output = :output, finished_at = :finished_at
		WHERE id = :id AND (finished_at IS NULL OR :run_id <> '')`)
	resultOf = db.Q[Result](`SELECT command, exit_code, output FROM ci_runs WHERE pr_id = $1 AND sha = $2`)
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, RepoID        string
	PRID                         string `db:"pr_id"`
	SHA, Command, Status, TaskID string
	CreatedAt                    int64
}

// endArgs are the parameters of end.
type endArgs struct {
	ID, Status, RunID, BoxID string
	ExitCode                 *int
	Output                   string
	FinishedAt               int64
}

// Rows lists the checks of tx.Account with the ids, newest first. Without ids (nil) it
// lists the newest checks. It lists at most limit.
func Rows(tx *db.Tx, ids []string, limit int) ([]Check, error) {
	b := db.Build(`SELECT c.id, r.owner || '/' || r.name AS repo, c.pr_id, c.sha, c.command, c.status, c.exit_code,
		c.created_at, c.started_at, c.finished_at
		FROM ci_runs c JOIN repos r ON r.id = c.repo_id WHERE c.account_id = `, tx.Account)
	if ids != nil {
		b.In("c.id", ids)
	}
	return db.Select[Check](tx, b.SQL(" ORDER BY c.created_at DESC, c.id DESC LIMIT ", limit))
}
