package gateway

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

// Attempt implements Attempts: the token "tok" belongs to the fixture's attempt.
func (f *fixture) Attempt(_ context.Context, token string) (Attempt, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token != "tok" || f.attempt == nil {
		return Attempt{}, false, nil
	}
	return *f.attempt, true, nil
}

// Park implements Parking.
func (f *fixture) Park(_ context.Context, p Park) error {
	if p.RunID != "run" {
		return fault.Missing("run")
	}
	f.parked <- p.Until
	return nil
}

// others implements what sessions, keys and budgets ask of domains that have no
// part in a call: there are no runs.
type others struct{}

func (others) Say(*db.Tx, string, string) (string, error) { return "", fault.Missing("run") }

func (others) Await(context.Context, string, string, time.Duration) (session.Outcome, error) {
	return session.Outcome{}, fault.Missing("run")
}

func (others) Events(*db.Tx, string, int64, int) ([]session.Event, error) { return nil, nil }
func (others) Record(*db.Tx, string) (session.RunRecord, error)           { return session.RunRecord{}, nil }

func (others) Parse(*db.Tx, *string, string) (session.Candidate, []string, error) {
	return session.Candidate{}, nil, nil
}

func (others) Adopt(*db.Tx, string, llm.Provider, string, string) ([]string, error) { return nil, nil }

// work is what budgets ask: a policy file may set a limit of runs, and every plan is there.
type work struct {
	others
	f *fixture
}

func (w work) Limits(*db.Tx, string) (budget.Defaults, error) {
	return budget.Defaults{Run: w.f.runLimit}, nil
}

func (work) HasPlan(*db.Tx, string) (bool, error) { return true, nil }
func (work) Repo(*db.Tx, string, string) (id, full string, ok bool, err error) {
	return "", "", false, nil
}

func (others) SetTaskBudget(*db.Tx, string, *int64) (*int64, error) {
	return nil, fault.Missing("task")
}

// Priced asks the keys, as the program does.
func (others) Priced(tx *db.Tx, account string, m budget.Model) (bool, error) {
	return modelkey.Priced(tx, account, m.Key, llm.Provider(m.Provider), m.Name, llm.DefaultPrices())
}

func (others) KeyLabels(tx *db.Tx) (map[string]string, error) { return modelkey.Labels(tx) }

func (others) PoolKeys(tx *db.Tx, account string) (out []budget.PoolKey, err error) {
	all, err := modelkey.Pool(tx, account)
	for _, k := range all {
		out = append(out, budget.PoolKey(k))
	}
	return out, err
}
