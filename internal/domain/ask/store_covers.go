package ask

import "yardmaster/internal/db"

var (
	insertCover = db.SWith[coverArgs](`INSERT INTO ask_covers (task_id, ask_id, account_id) VALUES (:task_id, :ask_id, :account_id)
		ON CONFLICT DO NOTHING`)
	coveredBy = db.Q[string](`SELECT ask_id FROM ask_covers WHERE account_id = $1 AND task_id = $2 ORDER BY ask_id`)
)

// coverArgs are the parameters of insertCover.
type coverArgs struct{ TaskID, AskID, AccountID string }

// cover notes the tasks that cover an ask without having been made for it.
func cover(tx *db.Tx, askID string, v Verdict) error {
	tasks := v.TaskIDs
	if v.CoveringTaskID != nil {
		tasks = append([]string{*v.CoveringTaskID}, tasks...)
	}
	for _, taskID := range tasks {
		if _, err := insertCover.Exec(tx, coverArgs{taskID, askID, tx.Account}); err != nil {
			return err
		}
	}
	return nil
}

// CoveredBy lists the asks of tx.Account that a task covers without having been made for
// them.
func CoveredBy(tx *db.Tx, taskID string) ([]string, error) {
	return coveredBy.All(tx, tx.Account, taskID)
}

// Works lists the tasks whose end is the end of what an ask of tx.Account wants: those that
// were made for it, and those that cover it. There are none of an ask that became a plan. byPeople
// tells that triage has made none and covered it with none, so that people make them.
func Works(tx *db.Tx, askID string) (taskIDs []string, byPeople bool, err error) {
	r, ok, err := byID.Maybe(tx, tx.Account, askID)
	if err != nil || !ok {
		return nil, false, err
	}
	none := r.Verdict == nil || r.Verdict.V.CoveringTaskID == nil && len(r.Verdict.V.TaskIDs) == 0
	if none {
		return nil, r.State == Escalated || r.State == Dropped, nil
	}
	if covering := r.Verdict.V.CoveringTaskID; covering != nil {
		taskIDs = append(taskIDs, *covering)
	}
	if r.Verdict.V.Kind == Planned {
		return taskIDs, false, nil
	}
	return append(taskIDs, r.Verdict.V.TaskIDs...), false, nil
}
