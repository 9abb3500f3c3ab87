package session

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// runs implements Runs without any run.
type runs struct{}

func (runs) Say(*db.Tx, string, string) (string, error) { return "", fault.Missing("run") }

func (runs) Await(context.Context, string, string, time.Duration) (Outcome, error) {
	return Outcome{}, fault.Missing("run")
}

func (runs) Events(*db.Tx, string, int64, int) ([]Event, error) { return nil, nil }
func (runs) Record(*db.Tx, string) (RunRecord, error)           { return RunRecord{}, nil }

// Parse implements Policies: every policy file is the candidate of the fixture.
func (f *fixture) Parse(*db.Tx, *string, string) (Candidate, []string, error) {
	return f.candidate, nil, nil
}
