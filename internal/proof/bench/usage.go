package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const (
	monthSessions = 20_000
	monthCalls    = 50 // of each session, by two models
	monthRounds   = 15
)

// A month of calls: sessions, numbered from 0, with their tasks, and the ledger of each.
var month = []db.Stmt{
	db.S(months + `INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, queued_at, branch, template, created_by,
		created_at, updated_at)
		SELECT 't' || CAST(i AS TEXT), 'a', 'r' || CAST(i % 10 AS TEXT), 'work', 'queued', 'Make a widget turn the right way round', '',
		'merged', 0, '', 'default', 'user:ada', 0, 0 FROM n`),
	db.S(months + `INSERT INTO sessions (id, account_id, repo_id, task_id, kind, trigger, started_at)
		SELECT 's' || CAST(i AS TEXT), 'a', 'r' || CAST(i % 10 AS TEXT), 't' || CAST(i AS TEXT), 'work', 'run', 0 FROM n`),
	db.S(months + `INSERT INTO spend_days (account_id, day, session_id, key_id, provider, model, calls, unpriced, cost_micros)
		SELECT 'a', 20513 + i % 31, 's' || CAST(i AS TEXT), 'k' || CAST(i % 20 AS TEXT), 'anthropic', 'model-' || CAST(m.n AS TEXT), 25, 0, 1234
		FROM n CROSS JOIN (SELECT 0 AS n UNION ALL SELECT 1) m`),
}

const months = `WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1) `

// nobodysWork is what budgets ask of other domains, of which a reading of usage asks nothing.
type nobodysWork struct{}

func (nobodysWork) Limits(*db.Tx, string) (budget.Defaults, error) { return budget.Defaults{}, nil }
func (nobodysWork) HasPlan(*db.Tx, string) (bool, error)           { return false, nil }
func (nobodysWork) SetTaskBudget(*db.Tx, string, *int64) (*int64, error) {
	return nil, fault.Missing("task")
}

func (nobodysWork) Repo(tx *db.Tx, owner, name string) (id, full string, ok bool, err error) {
	r, ok, err := repo.ByName(tx, owner, name)
	return r.ID, r.FullName(), ok, err
}

func (nobodysWork) Priced(*db.Tx, string, budget.Model) (bool, error) { return true, nil }
func (nobodysWork) PoolKeys(*db.Tx, string) ([]budget.PoolKey, error) { return nil, nil }
func (nobodysWork) KeyLabels(tx *db.Tx) (map[string]string, error)    { return modelkey.Labels(tx) }

// usage measures how long the answer takes of what a month of a million calls has cost.
func usage(ctx context.Context, b *bench) error {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		if err := usageOn(ctx, b, e); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
	}
	return nil
}

func usageOn(ctx context.Context, b *bench, e db.Engine) (err error) {
	dsn, drop, err := dbtest.Throwaway(ctx, e, filepath.Join(b.dir, "usage.db"))
	if err != nil {
		return err
	}
	defer drop()
	at := time.Date(2026, 3, 20, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time { return at }
	d, err := db.Open(ctx, dsn, db.Options{Clock: clock})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Migrated(ctx); err != nil {
		return err
	}
	err = d.Write(ctx, func(tx *db.Tx) error {
		_, err1 := newAccount.Exec(tx)
		_, err2 := newRepos.Exec(tx, 10)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		for _, insert := range month {
			if _, err := insert.Exec(tx, monthSessions); err != nil {
				return err
			}
		}
		_, err := analyze.Exec(tx)
		return err
	})
	if err != nil {
		return err
	}
	s := budget.New(budget.Needs{
		DB: d, Hub: event.NewHub(), Logger: slog.New(slog.DiscardHandler), Clock: clock, Node: "n",
		Work: nobodysWork{}, Prices: nobodysWork{},
	})
	handler := rest.Handler(rest.Config{Pipeline: &op.Pipeline{
		Authenticate: func(context.Context, op.Presented) (policy.Actor, error) {
			return policy.Actor{Credential: policy.PAT, AccountID: "a", UserID: "ada", Scopes: policy.Owner.Ceiling()}, nil
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, s.Ops())
	var took []time.Duration
	for range monthRounds {
		began := time.Now()
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/billing/usage", nil))
		took = append(took, time.Since(began))
		if rec.Code != http.StatusOK {
			return fmt.Errorf("billing.usage: %d %s", rec.Code, rec.Body)
		}
	}
	took = took[1:] // the first one plans the statements
	half := percentile(took, 50)
	b.add(row{
		what:  fmt.Sprintf("billing.usage of a month of %d calls in %d sessions, the median, %s", monthSessions*monthCalls, monthSessions, e),
		value: ms(half), target: "≤ 300.0 ms", met: half <= 300*time.Millisecond,
	})
	return nil
}
