package ci

import "yardmaster/internal/db"

// candidateArgs are the parameters of insertCandidate.
type candidateArgs struct {
	ID, AccountID, RepoID string
	SHA                   string `db:"sha"`
	Command, TaskID       string
	CreatedAt             int64
}

var (
	insertCandidate = db.SWith[candidateArgs](`INSERT INTO ci_runs (id, account_id, repo_id, sha, command, status, task_id, created_at)
		VALUES (:id, :account_id, :repo_id, :sha, :command, 'queued', :task_id, :created_at)`)
	candidateOf = db.Q[CommitResult](`SELECT status, exit_code, output FROM ci_runs WHERE repo_id = $1 AND sha = $2 AND pr_id IS NULL
		ORDER BY created_at DESC, id DESC LIMIT 1`)
	hostResultOf = db.Q[HostResult](`SELECT result, hold, why FROM host_heads WHERE repo_id = $1 AND sha = $2`)
)
