package artifact

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

type row struct {
	ID, AccountID         string
	RunID, TaskID, RepoID *string
	Name, MediaType       string
	Size                  int64
	SHA256                string `db:"sha256"`
	Visibility            string
	CreatedBy             string
	CreatedAt             time.Time
	StoredAt, MissingAt   *time.Time
	SharedUntil           *time.Time
	ExpiresAt             time.Time
	DeletedAt             *time.Time
}

// key is where the bytes are in the store of objects. No two artifacts share one.
func (r row) key() string { return r.AccountID + "/artifacts/" + r.ID }

const (
	columns = `id, account_id, run_id, task_id, repo_id, name, media_type, size, visibility, created_by, created_at, stored_at,
	missing_at, shared_until, expires_at, deleted_at, sha256`
	// shows is the condition of rows that lists have.
	shows = `stored_at IS NOT NULL AND missing_at IS NULL AND deleted_at IS NULL`
)

var (
	insert = db.SWith[row](`INSERT INTO artifacts (` + columns + `) VALUES (:id, :account_id, :run_id, :task_id, :repo_id, :name,
		:media_type, :size, :visibility, :created_by, :created_at, :stored_at, :missing_at, :shared_until, :expires_at, :deleted_at, :sha256)`)
	// ofRun counts what was recorded for a run, whatever became of it.
	ofRun = db.Q[int](`SELECT COUNT(*) AS n FROM artifacts WHERE account_id = $1 AND run_id = $2`)
	// byID finds an artifact that nobody has deleted, arrived or not.
	byID   = db.Q[row](`SELECT ` + columns + ` FROM artifacts WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL AND expires_at > $3`)
	lockID = byID.ForUpdate()
	// anywhere finds the artifact of a row or of a key, whatever became of it.
	anywhere = db.Q[row](`SELECT ` + columns + ` FROM artifacts WHERE account_id = $1 AND id = $2`)
	lockAny  = anywhere.ForUpdate()
	ofTask   = db.Q[row](`SELECT ` + columns + ` FROM artifacts WHERE account_id = $1 AND task_id = $2 AND expires_at > $3 AND ` + shows + `
		ORDER BY created_at DESC, id DESC LIMIT 200`)
	all = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM artifacts LIMIT $1`)

	allShown = db.Q[row](`SELECT ` + columns + ` FROM artifacts WHERE ` + shows + ` ORDER BY id`)

	arrived = db.S(`UPDATE artifacts SET stored_at = $2 WHERE id = $1 AND stored_at IS NULL AND deleted_at IS NULL`)
	missing = db.S(`UPDATE artifacts SET missing_at = $2 WHERE id = $1`)
	shared  = db.SWith[row](`UPDATE artifacts SET visibility = :visibility, shared_until = :shared_until, expires_at = :expires_at
		WHERE id = :id`)
	hide   = db.S(`UPDATE artifacts SET deleted_at = $2 WHERE id = $1`)
	empty  = db.S(`UPDATE artifacts SET size = 0 WHERE id = $1 AND deleted_at IS NOT NULL`)
	remove = db.S(`DELETE FROM artifacts WHERE id = $1 AND deleted_at IS NOT NULL`)
)

// find reads an artifact of tx.Account, arrived or not. It returns fault.NotFound in the same
// words for an id that is unknown, foreign or malformed, and for what is deleted or expired.
func find(tx *db.Tx, q db.Query[row], artifactID string) (row, error) {
	if !id.Valid(artifactID) {
		return row{}, fault.Missing("artifact")
	}
	r, ok, err := q.Maybe(tx, tx.Account, artifactID, tx.Now)
	if err == nil && !ok {
		err = fault.Missing("artifact")
	}
	return r, err
}

// OfTask lists the newest artifacts of a task of tx.Account that show, newest first.
func OfTask(tx *db.Tx, taskID string) ([]Artifact, error) {
	rows, err := ofTask.All(tx, tx.Account, taskID, tx.Now)
	out := make([]Artifact, len(rows))
	for i, r := range rows {
		out[i] = r.wire()
	}
	return out, err
}

// list reads the newest artifacts of tx.Account that show.
func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	b := db.Build(`SELECT `+columns+` FROM artifacts WHERE `+shows+` AND expires_at > `, tx.Now).And("account_id = ", tx.Account)
	if want := p.Want("run_id"); want != "" {
		b.And("run_id = ", want)
	}
	if want := p.Want("task_id"); want != "" {
		b.And("task_id = ", want)
	}
	if want := p.Want("repo_id"); want != "" {
		b.And("repo_id = ", want)
	}
	return db.Select[row](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}
