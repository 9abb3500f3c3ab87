package kb

import (
	"time"

	"yardmaster/internal/db"
)

// dueRow is a repository whose files are to be compared.
type dueRow struct {
	RepoID string
	DueAt  int64
}

// citedRow is a page that names files and is not stale.
type citedRow struct {
	Slug    string
	SeenSHA string `db:"seen_sha"`
	Files   db.JSON[[]string]
}

// staleArgs are the parameters of setStale.
type staleArgs struct {
	RepoID, Slug, StaleSHA string
	StaleFiles             db.JSON[[]string]
	StaleAt                time.Time
}

var (
	setDue = db.S(`UPDATE kb_indexes SET due_at = $2 WHERE repo_id = $1`)
	anyDue = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM kb_indexes WHERE due_at <= $1)`)
	// takeDue puts off what it answers: no other node takes it meanwhile.
	takeDue = db.Q[dueRow](`UPDATE kb_indexes SET due_at = $2 WHERE due_at <= $1 RETURNING repo_id, due_at`)
	// done leaves alone what was made due again meanwhile.
	done     = db.S(`UPDATE kb_indexes SET due_at = NULL WHERE repo_id = $1 AND due_at = $2`)
	pullIn   = db.S(`UPDATE kb_indexes SET due_at = $1 WHERE due_at > $2`)
	allCited = db.Q[citedRow](`SELECT slug, seen_sha, files FROM kb_pages WHERE repo_id = $1 AND stale_at IS NULL AND files <> '[]'
		ORDER BY slug`)
	setStale = db.SWith[staleArgs](`UPDATE kb_pages SET stale_at = :stale_at, stale_sha = :stale_sha, stale_files = :stale_files
		WHERE repo_id = :repo_id AND slug = :slug`)
	setSeen = db.S(`UPDATE kb_pages SET seen_sha = $3 WHERE repo_id = $1 AND seen_sha = $2 AND stale_at IS NULL AND files <> '[]'`)
)

// ClockSetBack makes those repositories due whose files would be compared later than holdFor
// from now.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(holdFor)))
	return err
}
