package overview

import (
	"time"

	"yardmaster/internal/db"
)

type repoRow struct {
	ID, DefaultBranch string
	LastActivityAt    *time.Time
}

// publicRow is a repository that shows some of its activity to everybody.
type publicRow struct {
	ID, AccountID, Owner, Name           string
	DonationsEnabled, PublicStatsEnabled bool
}

var (
	selectRepo = db.Q[repoRow](`SELECT id, default_branch, last_activity_at FROM repos
		WHERE account_id = $1 AND owner = $2 AND name = $3 AND enabled`)
	// selectNamed finds a repository that is enabled or not, that one first.
	selectNamed = db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3
		ORDER BY enabled DESC, created_at, id LIMIT 1`)
	// selectPublic finds a repository, of whatever account, that shows something to
	// everybody.
	selectPublic = db.Q[publicRow](`SELECT id, account_id, owner, name, donations_enabled, public_stats_enabled FROM repos
		WHERE owner = $1 AND name = $2 AND enabled = TRUE AND private = FALSE AND (donations_enabled = TRUE OR public_stats_enabled = TRUE)
		ORDER BY enabled DESC, created_at, id LIMIT 1`)
	selectHuman = db.Q[*time.Time](`SELECT MAX(merged_at) FROM pulls WHERE account_id = $1 AND repo_id = $2 AND state = 'merged'
		AND task_id IS NULL AND author_kind NOT IN ('agent', 'bot')`)
)
