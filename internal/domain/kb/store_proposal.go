package kb

import (
	"time"

	"yardmaster/internal/db"
)

// proposalRow is what a run would have a page say.
type proposalRow struct {
	ID, RepoID, Slug, RunID, TaskID, Declared string
	Base                                      int64
	Kind, Title, Body                         string
	Files                                     db.JSON[[]string]
	CommitSHA                                 string `db:"commit_sha"`
	Why, State, Reason, DecidedBy             string
	CreatedAt                                 time.Time
	DecidedAt                                 *time.Time
}

// judgingRow is a proposal that a judge is asked about.
type judgingRow struct{ ID, RepoID string }

// outdateArgs are the parameters of outdate.
type outdateArgs struct {
	RepoID, Slug, But string
	Now               time.Time
}

// decideArgs are the parameters of setDecided.
type decideArgs struct {
	ID, State, Reason, DecidedBy string
	DecidedAt                    *time.Time
}

const proposalColumns = `id, repo_id, slug, run_id, task_id, declared, base, kind, title, body, files, commit_sha, why, state, reason,
	decided_by, created_at, decided_at`

var (
	putProposal = db.SWith[proposalRow](`INSERT INTO kb_proposals (` + proposalColumns + `)
		VALUES (:id, :repo_id, :slug, :run_id, :task_id, :declared, :base, :kind, :title, :body, :files, :commit_sha, :why, :state, :reason,
		:decided_by, :created_at, :decided_at) ON CONFLICT (run_id, declared) DO NOTHING`)
	anyProposal  = db.Q[proposalRow](`SELECT ` + proposalColumns + ` FROM kb_proposals WHERE id = $1`)
	lockProposal = db.Q[proposalRow](`SELECT ` + proposalColumns + ` FROM kb_proposals WHERE id = $1`).ForUpdate()
	setDecided   = db.SWith[decideArgs](`UPDATE kb_proposals SET state = :state, reason = :reason, decided_by = :decided_by,
		decided_at = :decided_at WHERE id = :id`)
	openProposals = db.Q[proposalRow](`SELECT ` + proposalColumns + ` FROM kb_proposals
		WHERE repo_id = $1 AND slug = $2 AND decided_at IS NULL ORDER BY id`)
	countOpen    = db.Q[int64](`SELECT COUNT(*) FROM kb_proposals WHERE repo_id = $1 AND decided_at IS NULL`)
	countWaiting = db.Q[int64](`SELECT COUNT(*) FROM kb_proposals WHERE repo_id = $1 AND state = 'waiting'`)
	// outdate ends the open proposals that were made of what a page was, but one.
	outdate = db.SWith[outdateArgs](`UPDATE kb_proposals SET state = 'outdated', decided_at = :now
		WHERE repo_id = :repo_id AND slug = :slug AND id <> :but AND kind = 'page' AND decided_at IS NULL`)
	forgetProposals = db.S(`DELETE FROM kb_proposals WHERE repo_id = $1 AND decided_at IS NOT NULL AND id NOT IN (
		SELECT id FROM kb_proposals WHERE repo_id = $1 AND decided_at IS NOT NULL ORDER BY id DESC LIMIT 200)`)
	allJudging = db.Q[judgingRow](`SELECT id, repo_id FROM kb_proposals WHERE state = 'judging' LIMIT $1`)
	// byPeople counts the kept versions of a page that no run wrote.
	byPeople = db.Q[int64](`SELECT COUNT(*) FROM kb_versions WHERE repo_id = $1 AND slug = $2 AND run_id IS NULL`)
)

// proposals are those of a repository, newest first, behind one.
func proposals(tx *db.Tx, repoID, state string, after []string, limit int) ([]proposalRow, error) {
	b := db.Build(`SELECT `+proposalColumns+` FROM kb_proposals WHERE repo_id = `, repoID)
	if state != "" {
		b.Is("state", state)
	}
	if len(after) == 1 {
		b.And("id < ", after[0])
	}
	return db.Select[proposalRow](tx, b.SQL(" ORDER BY id DESC LIMIT ", limit))
}

// pagesNamed are the pages of a repository that have some slugs.
func pagesNamed(tx *db.Tx, repoID string, slugs []string) ([]pageRow, error) {
	return db.Select[pageRow](tx, db.Build(`SELECT `+headColumns+`, body FROM kb_pages WHERE repo_id = `, repoID).In("slug", slugs))
}
