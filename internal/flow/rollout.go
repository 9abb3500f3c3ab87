package flow

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/rollout"
	"yardmaster/internal/domain/run"
)

// RolloutRuns tells rollouts how runs of boxes ended.
type RolloutRuns struct{}

// Outcomes implements rollout.Runs.
func (RolloutRuns) Outcomes(tx *db.Tx, since time.Time) ([]rollout.Outcome, error) {
	all, err := run.EndedSince(tx, since)
	out := make([]rollout.Outcome, len(all))
	for i, e := range all {
		out[i] = rollout.Outcome{BoxID: e.BoxID, Began: e.CreatedAt, Failed: e.Failed}
	}
	return out, err
}
