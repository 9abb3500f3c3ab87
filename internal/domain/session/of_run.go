package session

import (
	"yardmaster/internal/db"
	"yardmaster/internal/id"
)

// Beginning is the facts about a run when its session begins.
type Beginning struct {
	AccountID string
	RunID     string
	TaskID    string
	RepoID    string
	Trigger   string // the origin of the run's task
	Kind      string // of the task
	Policy    string // the Candidate that applies to the run, as JSON
}

// Begin opens the session of a run, at the time of the run's own transaction.
func Begin(tx *db.Tx, b Beginning) error {
	_, err := insertOfRun.Exec(tx, insertOfRunArgs{Beginning: b, ID: id.New(), StartedAt: tx.Now})
	return err
}

// End closes the session of a run, if it is open.
func End(tx *db.Tx, runID, outcome string) error {
	open, err := openOfRun.All(tx, runID)
	if err != nil {
		return err
	}
	for _, id := range open {
		// Before the row is locked, as calls that are stored lock it last.
		if err := Ended.Send(tx, id); err != nil {
			return err
		}
	}
	_, err = endOfRun.Exec(tx, runID, outcome, tx.Now)
	return err
}

// NoteModel stores the model that the agent of a run reports, unless the session has
// one from a call.
func NoteModel(tx *db.Tx, runID, model string) error {
	_, err := modelOfRun.Exec(tx, runID, model)
	return err
}

// Usage is the tokens and the cost of a run's session.
type Usage struct {
	RunID        string
	InputTokens  int64
	OutputTokens int64
	CacheTokens  int64
	CostMicros   *int64 // nil: no call had a price
}

// UsageOf lists the usage of the runs of a task, one a run.
func UsageOf(tx *db.Tx, accountID, taskID string) ([]Usage, error) {
	return usageOf.All(tx, accountID, taskID)
}
