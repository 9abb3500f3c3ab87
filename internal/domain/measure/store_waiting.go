package measure

import (
	"slices"
	"time"

	"yardmaster/internal/db"
)

// Waiting is what waits for people now, counted.
type Waiting struct {
	Approvals   int64 // questions about pull requests
	Pulls       int64 // open ones that go no further otherwise than by the question that is open
	Plans       int64 // to be approved
	Questions   int64 // open blockers that are answered
	Forms       int64 // open blockers that are filled with secrets
	Escalations int64
	Doubles     int64 // escalations about a pull request that is in Pulls
	Tasks       int64 // held, but by an open blocker
}

// Kinds of what waits for a person.
const (
	Approval   = "approval"   // a question about a pull request
	Blocker    = "blocker"    // what a task lacks
	Escalation = "escalation" // what agents handed to people
	Plan       = "plan"       // a plan that is to be approved
	Task       = "task"       // a task that was held, as by its budget
	Pull       = "pr"         // a pull request that only a person gets on
)

// Wait is something that waits for a person.
type Wait struct {
	Kind  string
	ID    string  // of the pull request of an approval, and else of the thing
	Repo  *string // owner/name
	Title string
	Why   string
	Who   *string // login of the person whose work it is
	Since time.Time
	Total int64 // of its kind, of which it is one
}

const (
	openBlocker    = `state = 'open'`
	openEscalation = `resolved_at IS NULL`
)

var (
	// waiting counts; the column of waits has the rows.
	waiting = db.Q[Waiting](`SELECT
		(SELECT COUNT(*) FROM pull_actions WHERE account_id = $1 AND ` + asked + `) AS approvals,
		(SELECT COUNT(*) FROM pulls WHERE account_id = $1 AND ` + stoppedOtherwise + `) AS pulls,
		(SELECT COUNT(*) FROM plan_progress WHERE account_id = $1 AND ` + planHeld + `) AS plans,
		(SELECT COUNT(*) FROM blockers WHERE account_id = $1 AND ` + openBlocker + ` AND kind <> 'missing_credential') AS questions,
		(SELECT COUNT(*) FROM blockers WHERE account_id = $1 AND ` + openBlocker + ` AND kind = 'missing_credential') AS forms,
		(SELECT COUNT(*) FROM escalations WHERE account_id = $1 AND ` + openEscalation + `) AS escalations,
		(SELECT COUNT(*) FROM escalations WHERE account_id = $1 AND ` + openEscalation + ` AND pr_id IN (SELECT id FROM pulls
			WHERE account_id = $1 AND ` + stoppedOtherwise + `)) AS doubles,
		(SELECT COUNT(*) FROM tasks t WHERE t.account_id = $1 AND t.status = 'held' AND NOT (COALESCE(t.failure_kind, 'blocked') = 'blocked'
			AND EXISTS (SELECT 1 FROM blockers b WHERE b.account_id = $1 AND b.task_id = t.id AND b.` + openBlocker + `))) AS tasks`)
	blockersOf = db.Q[int64](`SELECT COUNT(*) FROM blockers WHERE account_id = $1 AND repo_id = $2 AND ` + openBlocker)

	// waits are the statements about what waits, each of one kind and over an index that begins
	// with the account.
	waits = []db.Query[Wait]{
		db.Q[Wait](`SELECT 'approval' AS kind, a.pr_id AS id, r.owner || '/' || r.name AS repo, p.title, a.kind AS why, u.login AS who,
			a.requested_at AS since, a.total
			FROM (SELECT pr_id, kind, requested_at, COUNT(*) OVER () AS total FROM pull_actions
				WHERE account_id = $1 AND ` + asked + ` ORDER BY requested_at, id LIMIT $2) a
			JOIN pulls p ON p.id = a.pr_id JOIN repos r ON r.id = p.repo_id LEFT JOIN tasks t ON t.id = p.task_id
			LEFT JOIN users u ON u.id = t.requested_by`),
		db.Q[Wait](`SELECT 'blocker' AS kind, b.id, r.owner || '/' || r.name AS repo, t.title, b.kind AS why, u.login AS who,
			b.created_at AS since, b.total
			FROM (SELECT id, repo_id, task_id, kind, created_at, COUNT(*) OVER () AS total FROM blockers
				WHERE account_id = $1 AND ` + openBlocker + ` ORDER BY created_at, id LIMIT $2) b
			JOIN tasks t ON t.id = b.task_id JOIN repos r ON r.id = b.repo_id LEFT JOIN users u ON u.id = t.requested_by`),
		db.Q[Wait](`SELECT 'escalation' AS kind, e.id, r.owner || '/' || r.name AS repo, e.title, e.category AS why,
			CAST(NULL AS TEXT) AS who, e.created_at AS since, e.total
			FROM (SELECT id, repo_id, title, category, created_at, COUNT(*) OVER () AS total FROM escalations
				WHERE account_id = $1 AND ` + openEscalation + ` ORDER BY created_at, id LIMIT $2) e
			LEFT JOIN repos r ON r.id = e.repo_id`),
		db.Q[Wait](`SELECT 'plan' AS kind, p.id, r.owner || '/' || r.name AS repo, p.title, 'approval' AS why, u.login AS who,
			p.created_at AS since, g.total
			FROM (SELECT plan_id, COUNT(*) OVER () AS total FROM plan_progress
				WHERE account_id = $1 AND ` + planHeld + ` ORDER BY last_activity_at, plan_id LIMIT $2) g
			JOIN plans p ON p.id = g.plan_id JOIN repos r ON r.id = p.repo_id LEFT JOIN users u ON u.id = p.requested_by`),
		db.Q[Wait](`SELECT 'task' AS kind, t.id, r.owner || '/' || r.name AS repo, t.title, COALESCE(t.failure_kind, 'held') AS why,
			u.login AS who, t.updated_at AS since, t.total
			FROM (SELECT id, repo_id, title, failure_kind, requested_by, updated_at, COUNT(*) OVER () AS total FROM tasks
				WHERE account_id = $1 AND status = 'held' AND (failure_kind IS NULL OR failure_kind <> 'blocked')
				ORDER BY created_at, id LIMIT $2) t
			JOIN repos r ON r.id = t.repo_id LEFT JOIN users u ON u.id = t.requested_by`),
		db.Q[Wait](`SELECT 'pr' AS kind, p.id, r.owner || '/' || r.name AS repo, p.title, p.needs AS why, u.login AS who,
			COALESCE(p.needs_at, p.updated_at) AS since, p.total
			FROM (SELECT id, repo_id, task_id, title, needs, needs_at, updated_at, COUNT(*) OVER () AS total FROM pulls
				WHERE account_id = $1 AND ` + stopped + `
				AND NOT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = pulls.id AND a.` + asked + `)
				ORDER BY created_at, id LIMIT $2) p
			JOIN repos r ON r.id = p.repo_id LEFT JOIN tasks t ON t.id = p.task_id LEFT JOIN users u ON u.id = t.requested_by`),
	}
)

// WaitingFor counts what waits for people of tx.Account.
func WaitingFor(tx *db.Tx) (Waiting, error) { return waiting.One(tx, tx.Account) }

// BlockersOf counts what tasks of a repository of tx.Account wait for people to give.
func BlockersOf(tx *db.Tx, repoID string) (int64, error) {
	return blockersOf.One(tx, tx.Account, repoID)
}

// Waits are the things that wait for people of tx.Account, the longest first and at most most; total
// is how many there are.
func Waits(tx *db.Tx, most int) (rows []Wait, total int64, err error) {
	for _, q := range waits {
		some, err := q.All(tx, tx.Account, most)
		if err != nil {
			return nil, 0, err
		}
		if len(some) > 0 {
			total += some[0].Total
		}
		rows = append(rows, some...)
	}
	slices.SortStableFunc(rows, func(a, b Wait) int { return a.Since.Compare(b.Since) })
	return rows[:min(len(rows), most)], total, nil
}
