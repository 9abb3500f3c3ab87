package run

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
)

// byLent selects whether a run on a lent box was of a task, or of one about a pull request.
var byLent = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM runs WHERE box_right = '` + fleet.Gift + `'
	AND (task_id = $1 OR task_id IN (SELECT id FROM tasks WHERE pr_id = $2))) AS lent`)

// ByLent tells whether a box that another account has lent has had a run of a task, or of one
// about a pull request; nil: there is none. What such a run hands in is the word of whoever runs
// that box.
func ByLent(tx *db.Tx, taskID string, prID *string) (bool, error) {
	pr := ""
	if prID != nil {
		pr = *prID
	}
	return byLent.One(tx, taskID, pr)
}
