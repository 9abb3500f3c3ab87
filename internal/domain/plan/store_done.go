package plan

import "yardmaster/internal/db"

// IsDone tells whether a plan of tx.Account is done.
func IsDone(tx *db.Tx, planID string) (bool, error) {
	at, ok, err := selectProgress.Maybe(tx, tx.Account, planID)
	return ok && at.Status == Done, err
}

// Brief is what people are told of a plan.
type Brief struct {
	Title       string
	RequestedBy *string
}

var briefOf = db.Q[Brief](`SELECT title, requested_by FROM plans WHERE account_id = $1 AND id = $2`)

// BriefOf reads a plan of tx.Account.
func BriefOf(tx *db.Tx, planID string) (Brief, bool, error) {
	return briefOf.Maybe(tx, tx.Account, planID)
}

// IsOver tells whether no work of a plan of tx.Account begins by itself any more: it is
// done, has failed or was cancelled, or there is no such plan.
func IsOver(tx *db.Tx, planID string) (bool, error) {
	at, ok, err := selectProgress.Maybe(tx, tx.Account, planID)
	return !ok || at.Status == Done || at.Status == Failed || at.Status == Cancelled, err
}

var newestIn = db.Q[string](`SELECT g.plan_id FROM plan_progress g WHERE g.account_id = $1 AND (g.repo_id = $2
	OR EXISTS (SELECT 1 FROM plan_groups x WHERE x.plan_id = g.plan_id AND x.repo_id = $2))
	ORDER BY g.last_activity_at DESC, g.plan_id DESC LIMIT $3`)

// NewestIn lists the ids of the plans of tx.Account that work in a repository, the one
// that was active last first, and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return newestIn.All(tx, tx.Account, repoID, limit)
}
