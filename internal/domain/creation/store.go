package creation

import (
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

// The states of a creation.
const (
	asked  = "asked"  // nothing is known to be made
	made   = "made"   // the host has the repository, and so has repos
	done   = "done"   // it has its first commit
	failed = "failed" // given up
)

type row struct {
	ID             string
	AccountID      string
	Host           string
	Owner          string
	Name           string
	InstallationID string
	Private        bool
	Description    string
	Stack          string
	Base           int64
	State          string
	HostRepoID     string
	RepoID         *string
	CommitSHA      string `db:"commit_sha"`
	TaskID         *string
	Note           string
	Answered       bool
	CreatedBy      string
	UserID         string
	CreatedAt      time.Time

	again bool // an earlier try may have made the repository
	late  bool // it is not tried again
}

// at names the repository at its host.
func (c row) at() codehost.Repo {
	return codehost.Repo{Host: c.Host, ID: c.HostRepoID, Owner: c.Owner, Name: c.Name}
}

// same tells whether two rows ask for the same.
func (c row) same(o row) bool {
	return c.Host == o.Host && c.Owner == o.Owner && c.Name == o.Name && c.Private == o.Private && c.Description == o.Description &&
		c.Stack == o.Stack && c.CreatedBy == o.CreatedBy
}

const columns = `id, account_id, host, owner, name, installation_id, private, description, stack, base, state, host_repo_id, repo_id,
	commit_sha, task_id, note, answered, created_by, user_id, created_at`

var (
	insert = db.SWith[insertArgs](`INSERT INTO repo_creations (id, account_id, host, owner, name, installation_id, private, description,
		stack, base, state, created_by, user_id, created_at)
		VALUES (:id, :account_id, :host, :owner, :name, :installation_id, :private, :description, :stack, :base, 'asked',
		:created_by, :user_id, :created_at)`)
	byID = db.Q[row](`SELECT ` + columns + ` FROM repo_creations WHERE account_id = $1 AND id = $2`)
	// latest finds what was asked for last under a name, and was not given up.
	latest = db.QWith[latestArgs, row](`SELECT ` + columns + ` FROM repo_creations WHERE account_id = :account_id AND owner = :owner
		AND name = :name AND host = :host AND state <> 'failed' AND created_at > :since ORDER BY created_at DESC, id DESC LIMIT 1`)
	openKeys = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM repo_creations WHERE ended_at IS NULL LIMIT $1`)
	// The statements below change nothing if somebody else has gone on meanwhile.
	setMade = db.SWith[madeArgs](`UPDATE repo_creations SET state = 'made', host_repo_id = :host_repo_id, repo_id = :repo_id
		WHERE account_id = :account_id AND id = :id AND state = 'asked'`)
	setDone = db.SWith[doneArgs](`UPDATE repo_creations SET state = 'done', commit_sha = :commit_sha, task_id = :task_id, note = :note,
		ended_at = :now WHERE account_id = :account_id AND id = :id AND state = 'made'`)
	setFailed = db.SWith[failedArgs](`UPDATE repo_creations SET state = 'failed', note = :note, ended_at = :now
		WHERE account_id = :account_id AND id = :id AND ended_at IS NULL`)
	setNote     = db.S(`UPDATE repo_creations SET note = $3 WHERE account_id = $1 AND id = $2 AND ended_at IS NULL`)
	setAnswered = db.S(`UPDATE repo_creations SET answered = TRUE WHERE account_id = $1 AND id = $2`)
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, Host, Owner, Name, InstallationID, Description, Stack, CreatedBy, UserID string
	Private                                                                                 bool
	Base, CreatedAt                                                                         int64
}

// latestArgs are the parameters of latest.
type latestArgs struct {
	AccountID, Owner, Name, Host string
	Since                        int64
}

// madeArgs are the parameters of setMade.
type madeArgs struct {
	AccountID, ID, HostRepoID, RepoID string
}

// doneArgs are the parameters of setDone.
type doneArgs struct {
	AccountID, ID string
	CommitSHA     string `db:"commit_sha"`
	TaskID        *string
	Note          string
	Now           int64
}

// failedArgs are the parameters of setFailed.
type failedArgs struct {
	AccountID, ID, Note string
	Now                 int64
}
