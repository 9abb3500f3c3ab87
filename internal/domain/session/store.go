package session

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/money"
)

type row struct {
	ID           string
	RunID        *string
	TaskID       *string
	Title        *string
	Owner        *string
	Name         *string
	Trigger      string
	Kind         string
	Provider     *string
	Model        *string
	Outcome      *string
	Calls        int64
	Unpriced     int64
	CostMicros   *int64
	InputTokens  int64
	OutputTokens int64
	CacheTokens  int64
	StartedAt    time.Time
	EndedAt      *time.Time
}

const selection = `SELECT s.id, s.run_id, s.task_id, t.title, r.owner, r.name, s.trigger, s.kind, s.provider, s.model, s.outcome, s.calls,
	s.unpriced, s.cost_micros, s.input_tokens, s.output_tokens, s.cache_tokens, s.started_at, s.ended_at
	FROM sessions s LEFT JOIN repos r ON r.id = s.repo_id LEFT JOIN tasks t ON t.id = s.task_id WHERE s.account_id = `

var (
	byID = db.Q[row](selection + `$1 AND s.id = $2`)
	// repoID finds the repository that a name addresses, as repo.ByName does.
	repoID = db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3
		ORDER BY enabled DESC, created_at, id LIMIT 1`)

	insertOwn = db.SWith[insertOwnArgs](`INSERT INTO sessions (id, account_id, repo_id, trigger, kind, started_at, requested_by)
		VALUES (:id, :account_id, :repo_id, :trigger, :kind, :started_at, :requested_by)`)
	insertOfRun = db.SWith[insertOfRunArgs](`INSERT INTO sessions (id, account_id, run_id, task_id, repo_id, trigger, kind, started_at,
		policy)
		VALUES (:id, :account_id, :run_id, :task_id, :repo_id, :trigger, :kind, :started_at, :policy)`)
	openOfRun  = db.Q[string](`SELECT id FROM sessions WHERE run_id = $1 AND ended_at IS NULL`)
	endOfRun   = db.S(`UPDATE sessions SET outcome = $2, ended_at = $3 WHERE run_id = $1 AND ended_at IS NULL`)
	modelOfRun = db.S(`UPDATE sessions SET model = COALESCE(model, $2) WHERE run_id = $1`)
	usageOf    = db.Q[Usage](`SELECT run_id, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens,
		CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(cache_tokens) AS BIGINT) AS cache_tokens,
		CAST(SUM(cost_micros) AS BIGINT) AS cost_micros FROM sessions
		WHERE account_id = $1 AND task_id = $2 AND run_id IS NOT NULL GROUP BY run_id`)
	// openOwn are own sessions of a kind that may have lost their node.
	openOwn = db.QWith[openOwnArgs, string](`SELECT id FROM sessions WHERE account_id = :account_id AND started_at > :since
		AND started_at < :before AND kind = :kind AND run_id IS NULL AND ended_at IS NULL ORDER BY id LIMIT 20`)
	endOwn = db.S(`UPDATE sessions SET outcome = $2, ended_at = $3 WHERE id = $1 AND ended_at IS NULL AND run_id IS NULL`)

	// addCall counts one call. The id of the session comes from the token of an attempt,
	// never from a request.
	addCall = db.SWith[addCallArgs](`UPDATE sessions SET calls = calls + 1, input_tokens = input_tokens + :input_tokens,
		output_tokens = output_tokens + :output_tokens, cache_tokens = cache_tokens + :cache_tokens,
		unpriced = unpriced + :unpriced, cost_micros = CASE WHEN :unpriced = 0 THEN COALESCE(cost_micros,
		0) + :cost ELSE cost_micros END, provider = COALESCE(provider, :provider), model = COALESCE(model, :model)
		WHERE id = :id`)
)

// addCallArgs are the parameters of addCall.
type addCallArgs struct {
	ID                                                     string
	InputTokens, OutputTokens, CacheTokens, Unpriced, Cost int64
	Provider, Model                                        string
}

// insertOfRunArgs are the parameters of insertOfRun.
type insertOfRunArgs struct {
	Beginning
	ID        string
	StartedAt time.Time
}

// openOwnArgs are the parameters of openOwn.
type openOwnArgs struct {
	AccountID, Kind string
	Since, Before   time.Time
}

// insertOwnArgs are the parameters of insertOwn.
type insertOwnArgs struct {
	ID, AccountID string
	RepoID        *string
	Trigger, Kind string
	StartedAt     time.Time
	RequestedBy   *string
}

type eventRow struct {
	Seq  int64
	At   time.Time
	Kind string
	Data string
}

// RunRecord is how a run was carried out; nil: the run does not tell, or the session
// has none.
type RunRecord struct {
	Template       *string
	Isolation      *string
	IsolationHolds []string // the promises of the isolation that it kept; nil: not told
	FailureKind    *string
	LastSeq        int64 // number of the last event of the run
}

// facts is the recorded facts of a session for a replay. Times are microseconds,
// amounts micro-dollars.
type facts struct {
	Run          RunRecord `db:"-"`
	CostMicros   *int64
	Unpriced     int64
	TaskCost     *int64
	TaskUnpriced int64
	OwnBudget    *int64 // the task's own
	RepoID       *string
	Policy       *db.JSON[Candidate]
	PRID         *string `db:"pr_id"`
	MergedAt     *int64
	Asked        int64 // merges for which a person was asked
	ByPolicy     int64 // merges that the policy ordered
	Applied      int64 // merges that were carried out; 0 for a merge by hand
	Command      *string
	CheckMicros  *int64
}

var (
	addEvent = db.SWith[addEventArgs](`INSERT INTO session_events (session_id, seq, at, kind, data) SELECT :session_id,
		COALESCE(MAX(seq), 0) + 1, :at, :kind, :data FROM session_events
		WHERE session_id = :session_id`)
	lastSeq = db.Q[int64](`SELECT COALESCE(MAX(seq), 0) FROM session_events WHERE session_id = $1`)
	// ofSession is read once the session was found in the account.
	ofSession = db.Q[eventRow](`SELECT seq, at, kind, data FROM session_events WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`)

	// selectFacts reads the newest check of the task's pull request. A merge that a
	// person orders without being asked has the same time for the request and the
	// decision.
	selectFacts = db.Q[facts](`SELECT s.repo_id, s.policy, s.cost_micros, s.unpriced, t.budget_micros AS own_budget,
		(SELECT CAST(SUM(o.cost_micros) AS BIGINT) FROM sessions o
		WHERE o.account_id = s.account_id AND o.task_id = s.task_id) AS task_cost,
		(SELECT CAST(COALESCE(SUM(o.unpriced), 0) AS BIGINT) FROM sessions o
			WHERE o.account_id = s.account_id AND o.task_id = s.task_id) AS task_unpriced,
		p.id AS pr_id, p.merged_at,
		(SELECT COUNT(*) FROM pull_actions a WHERE a.pr_id = p.id AND a.kind = 'merge'
		AND (a.decided_by IS NULL OR a.decided_by <> 'policy')
			AND (a.decided_at IS NULL OR a.decided_at > a.requested_at)) AS asked,
		(SELECT COUNT(*) FROM pull_actions a WHERE a.pr_id = p.id AND a.kind = 'merge' AND a.decided_by = 'policy') AS by_policy,
		(SELECT COUNT(*) FROM pull_actions a WHERE a.pr_id = p.id AND a.kind = 'merge' AND a.state = 'applied') AS applied,
		c.command, c.finished_at - c.started_at AS check_micros
		FROM sessions s LEFT JOIN tasks t ON t.id = s.task_id LEFT JOIN pulls p ON p.id = t.pr_id
		LEFT JOIN ci_runs c ON c.id = (SELECT l.id FROM ci_runs l WHERE l.pr_id = p.id ORDER BY l.created_at DESC, l.id DESC LIMIT 1)
		WHERE s.account_id = $1 AND s.id = $2`)
)

// addEventArgs are the parameters of addEvent.
type addEventArgs struct {
	SessionID  string
	At         time.Time
	Kind, Data string
}

// list reads a page, newest first, of all repositories or of one.
func list(tx *db.Tx, p op.PageIn, repo string) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(selection, tx.Account)
	if repo != "" {
		b.And("s.repo_id = ", repo)
	}
	part, err := p.Part()
	if err != nil {
		return nil, err
	}
	if err := db.Named(tx, b, "s.id", `SELECT id FROM sessions WHERE account_id`, part); err != nil {
		return nil, err
	}
	if run := p.Want("run"); run != "" {
		b.And("s.run_id = ", run).Few()
	}
	if task := p.Want("task"); task != "" {
		b.And("s.task_id = ", task).Few()
	}
	if model := p.Want("model"); model != "" {
		b.And("s.model = ", model)
	}
	if outcomes := p.Wants("outcome"); outcomes != nil {
		b.In("s.outcome", outcomes)
	}
	switch p.Want("state") {
	case "running":
		b.SQL(" AND s.ended_at IS NULL")
	case "ended":
		b.SQL(" AND s.ended_at IS NOT NULL")
	}
	if p.Want("cost") != "" {
		b.SQL(" AND s.unpriced > 0")
	}
	if more {
		b.OlderThan("s.started_at", "s.id", at, last)
	}
	return db.Select[row](tx, b.Newest("s.started_at", "s.id", p.Size()))
}

// Rows lists at most limit sessions of tx.Account, newest first: those whose id or
// whose run is among ids, or all for nil.
func Rows(tx *db.Tx, ids []string, limit int) ([]Session, error) {
	b := db.Build(selection, tx.Account)
	if ids != nil {
		b.And("s.id IN (SELECT id FROM sessions WHERE TRUE").In("run_id", ids).
			SQL(" UNION ALL SELECT id FROM sessions WHERE TRUE").In("id", ids).SQL(")").Few()
	}
	rows, err := db.Select[row](tx, b.Newest("s.started_at", "s.id", limit))
	return wires(rows), err
}

// find reads a session of tx.Account; unknown, foreign and malformed ids are the same
// fault.NotFound.
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
		ID: r.ID, RunID: r.RunID, TaskID: r.TaskID, Title: r.Title, Trigger: r.Trigger, Kind: r.Kind,
		Provider: (*llm.Provider)(r.Provider), Model: r.Model,
		Outcome: (*measure.Outcome)(r.Outcome),
		Calls:   r.Calls, Unpriced: r.Unpriced, CostUSD: money.DollarsOrNone(r.CostMicros),
		Tokens:    Tokens{Input: r.InputTokens, Output: r.OutputTokens, Cache: r.CacheTokens},
		StartedAt: r.StartedAt,
	}
	if r.Owner != nil && r.Name != nil {
		repo := *r.Owner + "/" + *r.Name
		out.Repo = &repo
	}
	out.EndedAt = r.EndedAt
	return out
}
