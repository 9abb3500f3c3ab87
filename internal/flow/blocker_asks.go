package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/policy"
)

// BlockerAsks files what is left when a blocker is cleared too late for its task.
// It is blocker.Asks.
type BlockerAsks struct{ Asks *ask.Service }

// File files an ask and answers its id.
func (b BlockerAsks) File(tx *db.Tx, f blocker.FollowUp) (string, error) {
	// Whoever opens a fix link may be anybody; what follows is what the task
	// was allowed.
	by := "blocker:" + f.BlockerID
	if actor := policy.From(tx.Context()); !actor.Anonymous() {
		by = actor.Label()
	}
	var person *string
	t, _, err := task.Get(tx, tx.Account, f.TaskID)
	if err != nil {
		return "", err
	}
	if person = t.RequestedBy; person == nil {
		answers := policy.From(tx.Context()).UserID // or nobody
		person = &answers
	}
	filed, _, err := b.Asks.File(tx, ask.Filing{
		RepoIDs: []string{f.RepoID}, Title: f.Title, Body: f.Body, Source: ask.FromBlocker, DedupeKey: f.BlockerID, By: by, RequestedBy: person,
		Scopes: policy.Scopes(policy.WriteTasks),
	})
	return filed.ID, err
}
