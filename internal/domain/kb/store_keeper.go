package kb

import (
	"strings"
	"time"

	"yardmaster/internal/db"
)

// keeperRow says which task keeps the pages of a repository.
type keeperRow struct {
	RepoID           string
	AskedAt, FiledAt *time.Time
	TaskID           *string
	Rounds           int64 // through the pages that no run has mended
}

// outdatedRow is a stale page, as its keeper needs it.
type outdatedRow struct {
	Slug       string
	CommitSHA  string `db:"commit_sha"`
	StaleSHA   string `db:"stale_sha"`
	StaleFiles db.JSON[[]string]
}

// filedArgs are the parameters of setFiled.
type filedArgs struct {
	RepoID  string
	FiledAt time.Time
	TaskID  string
	Rounds  int64
}

const stalePages = `SELECT slug, commit_sha, stale_sha, stale_files FROM kb_pages p WHERE repo_id = $1 AND stale_at IS NOT NULL
	AND length(body) <= $2 AND slug > $3 AND NOT EXISTS (SELECT 1 FROM kb_proposals o WHERE o.repo_id = p.repo_id AND o.slug = p.slug
	AND o.kind = 'page'`

var (
	oneKeeper  = db.Q[keeperRow](`SELECT repo_id, asked_at, filed_at, task_id, rounds FROM kb_keepers WHERE repo_id = $1`)
	lockKeeper = db.Q[keeperRow](`SELECT repo_id, asked_at, filed_at, task_id, rounds FROM kb_keepers WHERE repo_id = $1`).ForUpdate()
	askKeeper  = db.S(`INSERT INTO kb_keepers (repo_id, asked_at) VALUES ($1, $2)
		ON CONFLICT (repo_id) DO UPDATE SET asked_at =
		CASE WHEN kb_keepers.asked_at > COALESCE(kb_keepers.filed_at, 0) THEN kb_keepers.asked_at ELSE excluded.asked_at END, rounds = 0`)
	keeperDone = db.S(`UPDATE kb_keepers SET asked_at = NULL WHERE repo_id = $1`)
	setFiled   = db.SWith[filedArgs](`UPDATE kb_keepers SET asked_at = :filed_at, filed_at = :filed_at, task_id = :task_id, rounds = :rounds
		WHERE repo_id = :repo_id`)
	allAsked = db.Q[string](`SELECT repo_id FROM kb_keepers WHERE asked_at IS NOT NULL LIMIT $1`)
	// toKeep are stale pages behind one that a run can send whole, and for which nothing is proposed yet.
	toKeep = db.Q[outdatedRow](stalePages + ` AND o.decided_at IS NULL) ORDER BY slug LIMIT 12`)
	// toKeepAgain are those of them for which nothing was proposed since they are stale: what was
	// declined is not asked for again.
	toKeepAgain = db.Q[outdatedRow](stalePages + ` AND (o.decided_at IS NULL OR o.created_at >= p.stale_at)) ORDER BY slug LIMIT 12`)
)

// slugsIn are the slugs that stand in backticks in a text.
func slugsIn(text string) (slugs []string) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 && len(part) <= mostSlug && slugForm().MatchString(part) && len(slugs) < mostNamed {
			slugs = append(slugs, part)
		}
	}
	return slugs
}

// namedPages are the pages of a repository whose slugs stand in backticks in a text.
func namedPages(tx *db.Tx, repoID, text string) ([]pageRow, error) {
	slugs := slugsIn(text)
	if len(slugs) == 0 {
		return nil, nil
	}
	return db.Select[pageRow](tx, db.Build(`SELECT `+headColumns+`, body FROM kb_pages WHERE repo_id = `, repoID).
		In("slug", slugs).SQL(" AND length(body) <= 10000 ORDER BY slug LIMIT 12"))
}
