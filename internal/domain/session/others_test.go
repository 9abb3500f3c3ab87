package session

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/fault"
)

// runs answers for the attempt of the fixture; nothing is said to it, and it does
// nothing.
type runs struct{ f *fixture }

func (r *runs) Attempt(_ context.Context, token string) (Attempt, bool, error) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	if token != "tok" || r.f.attempt == nil {
		return Attempt{}, false, nil
	}
	return *r.f.attempt, true, nil
}

func (r *runs) Say(*db.Tx, string, string) (string, error) { return "", fault.Missing("run") }

func (r *runs) Await(context.Context, string, string, time.Duration) (Outcome, error) {
	return Outcome{}, fault.Missing("run")
}

func (r *runs) Events(*db.Tx, string, int64, int) ([]Event, error) { return nil, nil }
func (r *runs) Record(*db.Tx, string) (RunRecord, error)           { return RunRecord{}, nil }

// Parse reads every policy file as the candidate of the fixture.
func (f *fixture) Parse(*db.Tx, *string, string) (Candidate, []string, error) {
	return f.candidate, nil, nil
}

// others are templates that adopt no model, work without limits, and models
// without prices.
type others struct{}

func (others) Adopt(*db.Tx, string, string, string) ([]string, error) { return nil, nil }

func (others) Limits(*db.Tx, string) (budget.Defaults, error) { return budget.Defaults{}, nil }

func (others) SetTaskBudget(*db.Tx, string, *int64) (*int64, string, error) {
	return nil, "", fault.Missing("task")
}

func (others) HasPlan(*db.Tx, string) (bool, error) { return false, nil }

func (others) Priced(*db.Tx, string, budget.Model) (bool, error) { return false, nil }
