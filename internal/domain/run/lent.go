package run

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/task"
)

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

// unbind takes the token and the keys of whoever asked for a task from it, for good, if its box
// is lent, or such a box had a part in it before: whoever runs that box has one. The caller
// stores the task.
func (s *Service) unbind(tx *db.Tx, t *task.Row, right fleet.Right) (err error) {
	if t.Unbound || t.RequestedBy == nil {
		return nil
	}
	if t.Unbound = right.Kind == fleet.Gift; !t.Unbound {
		t.Unbound, err = s.Setup.OfLent(tx, t)
	}
	return err
}
