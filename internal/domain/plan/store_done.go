package plan

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

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

// Trouble is what keeps a plan from its end until a person acts.
type Trouble struct {
	Brief
	Status string
	// Failed are the units that have failed, in their order. Without one they are those that
	// can never begin, as what they wait for was cancelled.
	Failed []FailedUnit
	Behind int // how many more units failed only because they wait for those
}

// FailedUnit is a unit of a plan that has failed.
type FailedUnit struct{ TaskID, Title, Why string }

// TroubleOf reads what has failed of a plan of tx.Account. It answers false if nothing of it
// has, if it is cancelled, or if there is no such plan.
func TroubleOf(tx *db.Tx, planID string) (out Trouble, ok bool, err error) {
	p, ok, err := selectPlan.Maybe(tx, tx.Account, planID)
	if err != nil || !ok || p.CancelledAt != nil {
		return out, false, err
	}
	n, err := readNet(tx, planID)
	if err != nil {
		return out, false, err
	}
	out.Brief, out.Status = Brief{p.Title, p.RequestedBy}, n.progress(&p).status
	var behind []FailedUnit
	for i := range n.groups {
		g := &n.groups[i]
		if n.state(g) != Failed {
			continue
		}
		unit, root := failure(g, n.tasks[g.ID])
		if root {
			out.Failed = append(out.Failed, unit)
		} else {
			behind = append(behind, unit)
		}
	}
	if out.Behind = len(behind); len(out.Failed) == 0 {
		out.Failed, out.Behind = behind, 0
	}
	return out, len(out.Failed) > 0, nil
}

// failure says why a unit has failed; root is false if it failed only with what it waits for.
func failure(g *groupRow, tasks []task.Row) (unit FailedUnit, root bool) {
	for i := range tasks {
		t := &tasks[i]
		if t.Status != task.Failed {
			continue
		}
		unit = FailedUnit{TaskID: t.ID, Title: g.Title}
		switch {
		case t.Failure != nil && *t.Failure != "":
			unit.Why = *t.Failure
		case t.FailureKind != nil:
			unit.Why = *t.FailureKind
		}
		if t.FailureKind == nil || *t.FailureKind != task.DependencyFailed {
			return unit, true
		}
	}
	return unit, false
}
