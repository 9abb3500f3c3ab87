package task

import "yardmaster/internal/db"

// openTasks are tasks of an account that are not over.
var openTasks = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND status NOT IN ('completed', 'merged', 'cancelled', 'failed')
	ORDER BY id LIMIT 100`)

// EndAll cancels some tasks of tx.Account that are not over, and tells whether there are more.
func (s *Service) EndAll(tx *db.Tx) (more bool, err error) {
	ids, err := openTasks.All(tx, tx.Account)
	for _, id := range ids {
		if err != nil {
			break
		}
		var t Row
		if t, err = find(tx, id, true); err == nil && !t.Status.Terminal() {
			err = s.Cancel(tx, &t)
		}
	}
	return len(ids) == 100, err
}
