package session

import (
	"yardmaster/internal/db"
	"yardmaster/internal/id"
)

// Beginning is what the session of a run begins with.
type Beginning struct {
	AccountID string
	RunID     string
	TaskID    string
	RepoID    string
	Trigger   string // what the run's task came of
	Kind      string // of the task
	Policy    string // that the run is under, as JSON
}

// Begin opens the session of a run, at the time of the run's own transaction.
func Begin(tx *db.Tx, b Beginning) error {
	_, err := insertOfRun.Exec(tx, insertOfRunArgs{Beginning: b, ID: id.New(), StartedAt: tx.Now})
	return err
}

// End closes the session of a run, if it is open.
func End(tx *db.Tx, runID, outcome string) error {
	_, err := endOfRun.Exec(tx, runID, outcome, tx.Now)
	return err
}

// NoteModel notes the model that a run says it uses, unless a call has shown
// one.
func NoteModel(tx *db.Tx, runID, model string) error {
	_, err := modelOfRun.Exec(tx, runID, model)
	return err
}

// Usage is what the session of a run has used.
type Usage struct {
	RunID        string
	InputTokens  int64
	OutputTokens int64
	CacheTokens  int64
	CostMicros   *int64 // nil: no call had a price
}

// UsageOf lists what the runs of a task have used.
func UsageOf(tx *db.Tx, accountID, taskID string) ([]Usage, error) {
	return usageOf.All(tx, accountID, taskID)
}
