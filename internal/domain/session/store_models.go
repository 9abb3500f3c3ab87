package session

import "yardmaster/internal/db"

// Used is the model of a session; "" where none was recorded.
type Used struct{ TaskID, Provider, Model string }

// ModelsOf reads which models the newest sessions of tasks of tx.Account used, by task.
func ModelsOf(tx *db.Tx, taskIDs []string) (map[string]Used, error) {
	out := map[string]Used{}
	if len(taskIDs) == 0 {
		return out, nil
	}
	rows, err := db.Select[Used](tx, db.Build(`SELECT task_id, COALESCE(provider, '') AS provider, COALESCE(model, '') AS model FROM sessions
		WHERE account_id = `, tx.Account).In("task_id", taskIDs).SQL(" ORDER BY started_at, id"))
	for _, u := range rows {
		out[u.TaskID] = u
	}
	return out, err
}
