package session

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
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
	Calls        int64
	CostMicros   *int64
	InputTokens  int64
	OutputTokens int64
	CacheTokens  int64
	StartedAt    time.Time
	EndedAt      *time.Time
}

const selection = `SELECT s.id, s.run_id, s.task_id, r.owner, r.name, s.trigger, s.kind, s.provider, s.model, s.outcome, s.calls,
	s.cost_micros, s.input_tokens, s.output_tokens, s.cache_tokens, s.started_at, s.ended_at
	FROM sessions s LEFT JOIN repos r ON r.id = s.repo_id WHERE s.account_id = `

var (
	byID   = db.Q[row](selection + `$1 AND s.id = $2`)
	repoID = db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3`)

	// addCall counts one call. The session's id comes from its attempt's
	// token, never from a request.
	addCall = db.S(`UPDATE sessions SET calls = calls + 1, input_tokens = input_tokens + $2, output_tokens = output_tokens + $3,
		cache_tokens = cache_tokens + $4, unpriced = unpriced + $5,
		cost_micros = CASE WHEN $5 = 0 THEN COALESCE(cost_micros, 0) + $6 ELSE cost_micros END,
		provider = COALESCE(provider, $7), model = COALESCE(model, $8) WHERE id = $1`)
)

func add(tx *db.Tx, sessionID string, provider llm.Provider, u llm.Usage) error {
	var unpriced, cost int64 = 1, 0
	if u.CostMicros != nil {
		unpriced, cost = 0, *u.CostMicros
	}
	_, err := addCall.Exec(tx, sessionID, u.InputTokens, u.OutputTokens, u.CacheReadTokens+u.CacheWriteTokens, unpriced, cost, string(provider), u.Model)
	return err
}

func list(tx *db.Tx, p op.PageIn, repo string) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(selection, tx.Account)
	if repo != "" {
		b.And("s.repo_id = ", repo)
	}
	if more {
		b.And("(s.started_at, s.id) < ", db.Tuple(at, last))
	}
	return db.Select[row](tx, b.SQL(" ORDER BY s.started_at DESC, s.id DESC LIMIT ", p.Size()))
}

// find reads a session of tx.Account; an id that is unknown, foreign or
// malformed is the same 404.
func find(tx *db.Tx, sessionID string) (row, error) {
	if !id.Valid(sessionID) {
		return row{}, fault.Missing("session")
	}
	r, ok, err := byID.Maybe(tx, tx.Account, sessionID)
	if err == nil && !ok {
		err = fault.Missing("session")
	}
	return r, err
}

func (r row) wire() Session {
	out := Session{
		ID: r.ID, RunID: r.RunID, TaskID: r.TaskID, Trigger: r.Trigger, Kind: r.Kind, Provider: r.Provider, Model: r.Model, Outcome: r.Outcome,
		Calls: r.Calls, CostUSD: dollars(r.CostMicros), Tokens: SessionTokens{r.InputTokens, r.OutputTokens, r.CacheTokens},
		StartedAt: r.StartedAt.Truncate(time.Millisecond),
	}
	if r.Owner != nil && r.Name != nil {
		repo := *r.Owner + "/" + *r.Name
		out.Repo = &repo
	}
	if r.EndedAt != nil {
		t := r.EndedAt.Truncate(time.Millisecond)
		out.EndedAt = &t
	}
	return out
}
