package session

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/op"
)

type row struct {
	ID           string
	RunID        *string
	TaskID       *string
	Owner        *string
	Name         *string
	Trigger      string
	Kind         string
	Provider     *string
	Model        *string
	Outcome      *string
	CostMicros   *int64
	Calls        int64
	InputTokens  int64
	OutputTokens int64
	CacheTokens  int64
	StartedAt    time.Time
	EndedAt      *time.Time
}

func (r row) session() Session {
	out := Session{
		ID: r.ID, RunID: r.RunID, TaskID: r.TaskID, Trigger: r.Trigger, Kind: r.Kind, Provider: r.Provider, Model: r.Model,
		Outcome: r.Outcome, CostUSD: usd(r.CostMicros), StartedAt: r.StartedAt, EndedAt: r.EndedAt,
		Tokens: SessionTokens{r.Calls, r.InputTokens, r.OutputTokens, r.CacheTokens},
	}
	if r.Owner != nil {
		full := *r.Owner + "/" + *r.Name
		out.Repo = &full
	}
	return out
}

const columns = `s.id, s.run_id, s.task_id, r.owner, r.name, s.trigger, s.kind, s.provider, s.model, s.outcome, s.cost_micros,
	s.calls, s.input_tokens, s.output_tokens, s.cache_tokens, s.started_at, s.ended_at
	FROM sessions s LEFT JOIN repos r ON r.id = s.repo_id WHERE s.account_id = `

var (
	byID = db.Q[row](`SELECT ` + columns + `$1 AND s.id = $2`)
	add  = db.S(`UPDATE sessions SET provider = $2, model = $3, calls = calls + $4, unpriced = unpriced + $5,
		input_tokens = input_tokens + $6, output_tokens = output_tokens + $7, cache_tokens = cache_tokens + $8,
		cost_micros = CASE WHEN CAST($9 AS BIGINT) IS NULL THEN cost_micros ELSE COALESCE(cost_micros, 0) + CAST($9 AS BIGINT) END
		WHERE id = $1`)
)

// list is an account's sessions, newest first; repoID narrows it.
func list(tx *db.Tx, p op.PageIn, repoID string) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns, tx.Account)
	if repoID != "" {
		b.And("s.repo_id = ", repoID)
	}
	if more {
		b.And("(s.started_at, s.id) < ", db.Tuple(at, last))
	}
	return db.Select[row](tx, b.SQL(" ORDER BY s.started_at DESC, s.id DESC LIMIT ", p.Size()))
}
