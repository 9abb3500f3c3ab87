package backlog

import (
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

// job is an import that has not ended.
type job struct{ ID, RepoID string }

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
	insert = db.SWith[insertArgs](`INSERT INTO backlog_imports (id, account_id, repo_id, state, requested_by, created_at)
		VALUES (:id, :account_id, :repo_id, 'queued', :requested_by, :created_at)
		ON CONFLICT DO NOTHING`)
	openByID = db.Q[job](`SELECT id, repo_id FROM backlog_imports WHERE id = $1 AND state IN ('queued', 'running')`)
	openKeys = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM backlog_imports WHERE state IN ('queued', 'running') LIMIT $1`)
	begin    = db.S(`UPDATE backlog_imports SET state = 'running', tries = $2 WHERE id = $1 AND state IN ('queued', 'running')`)
	finish   = db.S(`UPDATE backlog_imports SET state = $2, finished_at = $3 WHERE id = $1 AND state IN ('queued', 'running')`)
	credit   = db.S(`UPDATE backlog_imports SET filed = filed + $2 WHERE id = $1`)
	filed    = db.Q[int64](`SELECT filed FROM backlog_imports WHERE account_id = $1 AND id = $2`)
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, RepoID, RequestedBy string
	CreatedAt                          time.Time
}
