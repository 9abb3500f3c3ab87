package flow

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/task"
)

// ClosureWork is what an account has under way, for its deletion.
type ClosureWork struct {
	Tasks *task.Service
	Boxes *box.Service
}

// End cancels tasks of tx.Account.
func (w ClosureWork) End(tx *db.Tx) (more bool, err error) { return w.Tasks.EndAll(tx) }

// Told tells whether all boxes know what was cancelled.
func (w ClosureWork) Told(tx *db.Tx) (bool, error) { return box.Told(tx) }

// Release revokes the boxes of an account.
func (w ClosureWork) Release(ctx context.Context, account string) error {
	return w.Boxes.ReleaseAll(ctx, account)
}
