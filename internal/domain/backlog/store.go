package backlog

import (
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// job is an import that this node has taken.
type job struct {
	ID          string
	AccountID   string
	RepoID      string
	RequestedBy string
	Tries       int64
}

// repoRow is the repository of an import.
type repoRow struct {
	ID, Host, HostRepoID, Owner, Name string
	Enabled                           bool
}

func (r repoRow) hostRepo() codehost.Repo {
	return codehost.Repo{Host: r.Host, ID: r.HostRepoID, Owner: r.Owner, Name: r.Name}
}

var (
	// repoByName finds the repository that a name addresses, as repo.ByName does.
	repoByName = db.Q[repoRow](`SELECT id, host, host_repo_id, owner, name, enabled FROM repos
		WHERE account_id = $1 AND owner = $2 AND name = $3 ORDER BY enabled DESC, created_at, id LIMIT 1`)
	repoByID = db.Q[repoRow](`SELECT id, host, host_repo_id, owner, name, enabled FROM repos WHERE account_id = $1 AND id = $2`)
	inFlight = db.Q[Import](`SELECT id AS job_id, state FROM backlog_imports
		WHERE account_id = $1 AND repo_id = $2 AND state IN ('queued', 'running')`)
	insert = db.SWith[insertArgs](`INSERT INTO backlog_imports (id, account_id, repo_id, state, requested_by, due_at, created_at)
		VALUES (:id, :account_id, :repo_id, 'queued', :requested_by, :due_at, :due_at)
		ON CONFLICT DO NOTHING`)
	takeDue = db.Q[job](`UPDATE backlog_imports SET state = 'running', claim = $2, due_at = $3, tries = tries + 1
		WHERE id IN (SELECT id FROM backlog_imports WHERE state IN ('queued', 'running') AND due_at <= $1 ORDER BY due_at LIMIT 4)
			AND state IN ('queued', 'running') AND due_at <= $1
		RETURNING id, account_id, repo_id, requested_by, tries`)
	renew = db.SWith[renewArgs](`UPDATE backlog_imports SET due_at = :due_at
		WHERE account_id = :account_id AND id = :id AND claim = :claim AND state = 'running'`)
	retry = db.SWith[retryArgs](`UPDATE backlog_imports SET due_at = :due_at, claim = NULL
		WHERE account_id = :account_id AND id = :id AND claim = :claim AND state = 'running'`)
	finish = db.SWith[finishArgs](`UPDATE backlog_imports SET state = :state, finished_at = :finished_at
		WHERE account_id = :account_id AND id = :id AND claim = :claim AND state = 'running'`)
	credit = db.SWith[creditArgs](`UPDATE backlog_imports SET filed = filed + :filed
		WHERE account_id = :account_id AND id = :id AND claim = :claim`)
	filed = db.Q[int64](`SELECT filed FROM backlog_imports WHERE account_id = $1 AND id = $2`)
)

// creditArgs are the parameters of credit.
type creditArgs struct {
	AccountID, ID, Claim string
	Filed                int
}

// finishArgs are the parameters of finish.
type finishArgs struct {
	AccountID, ID, Claim string
	State                State
	FinishedAt           time.Time
}

// retryArgs are the parameters of retry.
type retryArgs struct {
	AccountID, ID, Claim string
	DueAt                time.Time
}

// renewArgs are the parameters of renew.
type renewArgs struct {
	AccountID, ID, Claim string
	DueAt                time.Time
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, RepoID, RequestedBy string
	DueAt                              time.Time
}

// longestWait limits the time from now to the next try of an import.
const longestWait = 30 * time.Minute

var pullIn = db.S(`UPDATE backlog_imports SET due_at = $1 WHERE state IN ('queued', 'running') AND due_at > $2`)

// ClockSetBack makes those imports due now that would wait for longer than longestWait.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Now, tx.Now.Add(longestWait))
	return err
}
