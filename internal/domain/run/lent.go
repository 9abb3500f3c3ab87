package run

import "yardmaster/internal/db"

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
