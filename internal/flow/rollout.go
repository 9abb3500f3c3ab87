package flow

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
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

// BoxPrograms hands machines that join the programs of this version. Releases need boxes, so it is
// told of them after it was given to those.
type BoxPrograms struct{ Releases *release.Service }

// Handed implements box.Programs.
func (p *BoxPrograms) Handed(ctx context.Context) ([]box.Program, error) {
	all, err := p.Releases.Own(ctx)
	out := make([]box.Program, len(all))
	for i, each := range all {
		out[i] = box.Program(each)
	}
	return out, err
}
