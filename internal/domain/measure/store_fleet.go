package measure

import (
	"time"

	"yardmaster/internal/db"
)

// Heat is how the keys of a provider are used now.
type Heat struct {
	Provider string
	Keys     int64
	Failing  int64
	Capacity int64 // calls at once that its keys are meant for, of those of which that is known
	Unknown  int64 // keys of which it is not known
	Sessions int64 // of runs that a box holds, whose last call went to the provider
}

// Lane is the backlog of a repository, template and priority: tasks that the same boxes can take.
type Lane struct {
	Repo     string // owner/name
	Template string // empty for checks
	Priority int64
	Ready    int64
	Since    time.Time // when the oldest was filed, or a little before
}

// Known is an enabled repository.
type Known struct {
	ID, Repo       string // Repo is owner/name
	LastActivityAt *time.Time
}

// Backlog is the queue of an account now, counted.
type Backlog struct{ Pending, Ready int64 }

var (
	heats = db.Q[Heat](`SELECT k.provider, k.keys, k.failing, k.capacity, k.unknown, COALESCE(u.sessions, 0) AS sessions FROM (
		SELECT provider, COUNT(*) AS keys, SUM(CASE WHEN status = 'failing' THEN 1 ELSE 0 END) AS failing,
			CAST(COALESCE(SUM(capacity), 0) AS BIGINT) AS capacity, SUM(CASE WHEN capacity IS NULL THEN 1 ELSE 0 END) AS unknown
			FROM provider_keys WHERE account_id = $1 AND deleted_at IS NULL GROUP BY provider) k
		LEFT JOIN (SELECT s.provider, COUNT(*) AS sessions FROM tasks t JOIN sessions s ON s.run_id = t.run_id AND s.account_id = t.account_id
			WHERE t.account_id = $1 AND t.status IN ('claimed', 'running') GROUP BY s.provider) u ON u.provider = k.provider
		ORDER BY k.provider`)
	lanes = db.Q[Lane](`SELECT r.owner || '/' || r.name AS repo, l.template, l.priority, l.ready, l.head_at AS since
		FROM queue_lanes l JOIN repos r ON r.id = l.repo_id WHERE l.account_id = $1 AND l.ready > 0
		ORDER BY l.ready DESC, l.head_at, repo, l.template, l.priority LIMIT $2`)
	backlog = db.Q[Backlog](`SELECT COALESCE((SELECT pending FROM queue_depths WHERE account_id = $1), 0) AS pending,
		CAST(COALESCE((SELECT SUM(ready) FROM queue_lanes WHERE account_id = $1 AND ready > 0), 0) AS BIGINT) AS ready`)
	known = db.Q[Known](`SELECT id, owner || '/' || name AS repo, last_activity_at FROM repos
		WHERE account_id = $1 AND enabled = TRUE ORDER BY owner, name, id LIMIT $2`)
)

// Heats tells how the keys of tx.Account are used, by provider.
func Heats(tx *db.Tx) ([]Heat, error) { return heats.All(tx, tx.Account) }

// Lanes are the lanes of tx.Account with ready tasks, the deepest first and at most most.
func Lanes(tx *db.Tx, most int) ([]Lane, error) { return lanes.All(tx, tx.Account, most) }

// BacklogOf counts the queue of tx.Account.
func BacklogOf(tx *db.Tx) (Backlog, error) { return backlog.One(tx, tx.Account) }

// EnabledRepos lists the enabled repositories of tx.Account by their names, at most most.
func EnabledRepos(tx *db.Tx, most int) ([]Known, error) { return known.All(tx, tx.Account, most) }
