package kb

import (
	"time"

	"yardmaster/internal/db"
)

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
	// setDue asks for a look at a time of its own: done ends no other one.
	setDue   = db.S(`UPDATE kb_indexes SET due_at = CASE WHEN due_at >= $2 THEN due_at + 1 ELSE $2 END WHERE repo_id = $1`)
	asked    = db.Q[int64](`SELECT due_at FROM kb_indexes WHERE repo_id = $1 AND due_at IS NOT NULL`)
	done     = db.S(`UPDATE kb_indexes SET due_at = NULL WHERE repo_id = $1 AND due_at = $2`)
	owed     = db.Q[string](`SELECT repo_id FROM kb_indexes WHERE due_at IS NOT NULL LIMIT $1`)
	allCited = db.Q[citedRow](`SELECT slug, seen_sha, files FROM kb_pages WHERE repo_id = $1 AND stale_at IS NULL AND files <> '[]'
		ORDER BY slug`)
	setStale = db.SWith[staleArgs](`UPDATE kb_pages SET stale_at = :stale_at, stale_sha = :stale_sha, stale_files = :stale_files
		WHERE repo_id = :repo_id AND slug = :slug`)
	setSeen = db.S(`UPDATE kb_pages SET seen_sha = $3 WHERE repo_id = $1 AND seen_sha = $2 AND stale_at IS NULL AND files <> '[]'`)
)
