package kb

import (
	"time"

	"yardmaster/internal/db"
)

// headRow is a page without its text.
type headRow struct {
	RepoID     string
	Slug       string
	Ord        int64
	Title      string
	Links      db.JSON[[]string]
	CommitSHA  string `db:"commit_sha"`
	Files      db.JSON[[]string]
	RunID      *string
	Kept       string
	Version    int64
	SeenSHA    string `db:"seen_sha"`
	StaleAt    *time.Time
	StaleSHA   string `db:"stale_sha"`
	StaleFiles db.JSON[[]string]
	CreatedAt  time.Time
	UpdatedAt  time.Time
	UpdatedBy  string
}

// pageRow is a whole page.
type pageRow struct {
	headRow
	Body string
}

// versionRow is what a page was, or is.
type versionRow struct {
	Version   int64
	Title     string
	Links     db.JSON[[]string]
	CommitSHA string `db:"commit_sha"`
	Files     db.JSON[[]string]
	RunID     *string
	UpdatedAt time.Time
	UpdatedBy string
	Body      string
}

// indexRow is the row that orders the writers of a repository.
type indexRow struct{ Pages, NextOrd, Writes int64 }

const (
	headColumns = `repo_id, slug, ord, title, links, commit_sha, files, run_id, kept, version, seen_sha, stale_at, stale_sha,
		stale_files, created_at, updated_at, updated_by`
	versionColumns = `version, title, links, commit_sha, files, run_id, updated_at, updated_by`
)

var (
	onePage = db.Q[pageRow](`SELECT ` + headColumns + `, body FROM kb_pages WHERE repo_id = $1 AND slug = $2`)
	putPage = db.SWith[pageRow](`INSERT INTO kb_pages (` + headColumns + `, body)
		VALUES (:repo_id, :slug, :ord, :title, :links, :commit_sha, :files, :run_id, :kept, :version, :seen_sha, :stale_at, :stale_sha,
		:stale_files, :created_at, :updated_at, :updated_by, :body)
		ON CONFLICT (repo_id, slug) DO UPDATE SET title = excluded.title, links = excluded.links, commit_sha = excluded.commit_sha,
		files = excluded.files, run_id = excluded.run_id, kept = excluded.kept, version = excluded.version,
		seen_sha = excluded.seen_sha, stale_at = excluded.stale_at, stale_sha = excluded.stale_sha, stale_files = excluded.stale_files,
		updated_at = excluded.updated_at, updated_by = excluded.updated_by, body = excluded.body`)
	dropPage = db.S(`DELETE FROM kb_pages WHERE repo_id = $1 AND slug = $2`)

	// keepVersion keeps what a page is, before it is replaced.
	keepVersion = db.S(`INSERT INTO kb_versions (repo_id, slug, ` + versionColumns + `, body)
		SELECT repo_id, slug, ` + versionColumns + `, body FROM kb_pages WHERE repo_id = $1 AND slug = $2`)
	dropVersions = db.S(`DELETE FROM kb_versions WHERE repo_id = $1 AND slug = $2 AND version <= $3`)
	allVersions  = db.Q[versionRow](`SELECT ` + versionColumns + `, '' AS body FROM kb_versions WHERE repo_id = $1 AND slug = $2
		ORDER BY version DESC`)
	oneVersion = db.Q[versionRow](`SELECT ` + versionColumns + `, body FROM kb_versions WHERE repo_id = $1 AND slug = $2 AND version = $3`)

	dropLinks = db.S(`DELETE FROM kb_links WHERE repo_id = $1 AND slug = $2`)
	linkedTo  = db.Q[string](`SELECT slug FROM kb_links WHERE repo_id = $1 AND target = $2 AND slug <> $2 ORDER BY slug LIMIT 200`)
	leadsTo   = db.Q[string](`SELECT l.target FROM kb_links l JOIN kb_pages p ON p.repo_id = l.repo_id AND p.slug = l.target
		WHERE l.repo_id = $1 AND l.slug = $2 ORDER BY l.target LIMIT 200`)
	// unresolved are the pages that a page leads to and that are not there.
	unresolved = db.Q[string](`SELECT l.target FROM kb_links l LEFT JOIN kb_pages p ON p.repo_id = l.repo_id AND p.slug = l.target
		WHERE l.repo_id = $1 AND l.slug = $2 AND p.slug IS NULL ORDER BY l.target`)

	beginIndex = db.S(`INSERT INTO kb_indexes (repo_id, pages, next_ord, writes, formula) VALUES ($1, 0, 0, 0, $2)
		ON CONFLICT (repo_id) DO NOTHING`)
	lockIndex = db.Q[indexRow](`SELECT pages, next_ord, writes FROM kb_indexes WHERE repo_id = $1`).ForUpdate()
	readIndex = db.Q[indexRow](`SELECT pages, next_ord, writes FROM kb_indexes WHERE repo_id = $1`)
	moveIndex = db.SWith[moveIndexArgs](`UPDATE kb_indexes SET pages = :pages, next_ord = :next_ord, writes = writes + 1
		WHERE repo_id = :repo_id`)
)

// moveIndexArgs are the parameters of moveIndex.
type moveIndexArgs struct {
	RepoID         string
	Pages, NextOrd int64
}

// newestVersions drops the versions of a page but the newest ones, of which it is one.
func newestVersions(tx *db.Tx, p *pageRow) error {
	_, err := dropVersions.Exec(tx, p.RepoID, p.Slug, p.Version-mostVersions)
	return err
}

// relink replaces the links of a page.
func relink(tx *db.Tx, repoID, slug string, targets []string) error {
	if _, err := dropLinks.Exec(tx, repoID, slug); err != nil {
		return err
	}
	b := func() *db.Builder { return db.Build(`INSERT INTO kb_links (repo_id, target, slug) VALUES `) }
	for len(targets) > 0 {
		n := chunk
		for n > len(targets) {
			n /= 2
		}
		insert := b()
		for i, t := range targets[:n] {
			if i > 0 {
				insert.SQL(", ")
			}
			insert.SQL("", db.Tuple(repoID, t, slug))
		}
		if _, err := db.Select[string](tx, insert.SQL(` RETURNING target`)); err != nil {
			return err
		}
		targets = targets[n:]
	}
	return nil
}

// existing are the slugs among some that a repository has.
func existing(tx *db.Tx, repoID string, slugs []string) (map[string]bool, error) {
	out := map[string]bool{}
	err := inChunks(slugs, asParam, func(list any) error {
		rows, err := db.Select[string](tx, db.Build(`SELECT slug FROM kb_pages WHERE repo_id = `, repoID).And("slug IN ", list))
		for _, slug := range rows {
			out[slug] = true
		}
		return err
	})
	return out, err
}

// heads are pages without their text, by slug, behind one; stale is "true", "false" or "".
func heads(tx *db.Tx, repoID, after, stale string, limit int) ([]headRow, error) {
	b := db.Build(`SELECT `+headColumns+` FROM kb_pages WHERE repo_id = `, repoID)
	if after != "" {
		b.And("slug > ", after)
	}
	switch stale {
	case "true":
		b.SQL(" AND stale_at IS NOT NULL")
	case "false":
		b.SQL(" AND stale_at IS NULL")
	}
	return db.Select[headRow](tx, b.SQL(" ORDER BY slug LIMIT ", limit))
}

// Age is how old the pages of a repository are.
type Age struct {
	RepoID       string
	Pages, Fresh int64     // Fresh: those whose sources are as they were
	Newest       time.Time // when a page was last written
}

// Ages are those of repositories of tx.Account, without those that have no page.
func Ages(tx *db.Tx, repoIDs []string) ([]Age, error) {
	return db.Select[Age](tx, db.Build(`SELECT repo_id, COUNT(*) AS pages, COUNT(*) - COUNT(stale_at) AS fresh, MAX(updated_at) AS newest
		FROM kb_pages WHERE TRUE`).In("repo_id", repoIDs).SQL(` GROUP BY repo_id`))
}

// beginnings are pages with the beginning of their text, all that an excerpt is looked for in.
func beginnings(tx *db.Tx, repoID string, slugs []string) (map[string]pageRow, error) {
	rows, err := db.Select[pageRow](tx, db.Build(`SELECT `+headColumns+`, substr(body, 1, 65536) AS body FROM kb_pages WHERE repo_id = `,
		repoID).In("slug", slugs))
	out := make(map[string]pageRow, len(rows))
	for _, r := range rows {
		out[r.Slug] = r
	}
	return out, err
}
