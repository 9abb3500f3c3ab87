package session

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
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

// chatty has a run that says more than a download carries.
type chatty struct{ runs }

// Events implements Runs.
func (chatty) Events(*db.Tx, string, int64, int) (out []Event, err error) {
	data, err := json.Marshal(strings.Repeat("x", maxExport/batch))
	for i := range batch {
		out = append(out, NewEvent(int64(i), time.Now(), "agent.update", data))
	}
	return out, err
}

// Parse implements Policies: every policy file is the candidate of the fixture.
func (f *fixture) Parse(*db.Tx, *string, string) (Candidate, []string, error) {
	return f.candidate, nil, nil
}

// A session that has said more than a download carries is refused, and told where else it is.
func TestExportIsBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.Runs = chatty{}
		f.write(func(tx *db.Tx) error {
			_, err := db.S(`UPDATE sessions SET run_id = 'run'`).Exec(tx)
			return err
		})
		_, err := f.export(db.WithAccount(t.Context(), "acme"), idIn{f.session})
		if fault.From(err).Slug != "export-too-large" {
			t.Error(err)
		}
	})
}
