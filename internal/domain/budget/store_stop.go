package budget

import (
	"time"

	"yardmaster/internal/db"
)

// Stop is the reason why a task, or a session without one, may make no further call.
type Stop struct {
	ID         string // of the task, or of the session
	TaskID     *string
	SessionID  *string
	Reason     string // SlugExhausted or SlugUnpriced
	Scope, Ref string
	Provider   string
	Model      string
	KeyID      string
	At         time.Time
	Operator   bool // the operator's cap stops it, which is lower than the account's own
}

// stopped is a stop with the facts that decide when it ends.
type stopped struct {
	ID        string
	TaskID    *string
	SessionID *string
	AccountID string
	Scope     string
	Micros    int64
	Provider  string
	Model     string
	KeyID     string
}

const stopColumns = `b.id, b.task_id, b.session_id, b.account_id, b.scope, b.micros, b.provider, b.model, b.key_id`

var (
	addStop = db.SWith[addStopArgs](`INSERT INTO budget_stops (id, account_id, task_id, session_id, reason, scope, ref, period,
		micros, provider, model, key_id, at)
		VALUES (:id, :account_id, :task_id, :session_id, :reason, :scope, :ref, :period, :micros, :provider, :model, :key_id, :at)
		ON CONFLICT (id) DO UPDATE SET session_id = EXCLUDED.session_id, reason = EXCLUDED.reason, scope = EXCLUDED.scope,
		ref = EXCLUDED.ref, period = EXCLUDED.period, micros = EXCLUDED.micros, provider = EXCLUDED.provider,
		model = EXCLUDED.model, key_id = EXCLUDED.key_id, at = EXCLUDED.at`)
	dropStop = db.S(`DELETE FROM budget_stops WHERE id = $1`)
	// selectRaised reads the stops by a limit that is higher now.
	selectRaised = db.QWith[selectRaisedArgs, stopped](`SELECT ` + stopColumns + ` FROM budget_stops b
		WHERE b.account_id = :account_id AND b.scope = :scope AND b.ref = :ref AND b.micros < :micros
		AND b.reason = 'budget_exhausted' ORDER BY b.id`)
	// stopOfRun reads a task's stop by the limit of one run. The task's next run has a
	// meter of its own.
	stopOfRun = db.Q[stopped](`SELECT ` + stopColumns + ` FROM budget_stops b WHERE b.account_id = $1 AND b.task_id = $2 AND b.scope = 'run'
		AND b.reason = 'budget_exhausted'`)
	// selectStopsOfRepo reads the stops by the limits of a repository's policy file: for
	// runs, and for tasks without a budget of their own.
	selectStopsOfRepo = db.Q[stopped](`SELECT ` + stopColumns + ` FROM budget_stops b JOIN tasks t ON t.id = b.task_id
		LEFT JOIN tasks l ON b.scope = 'task' AND l.id = b.ref
		WHERE b.account_id = $1 AND t.repo_id = $2 AND b.reason = 'budget_exhausted'
			AND (b.scope = 'run' OR b.scope = 'task' AND l.budget_micros IS NULL)
		ORDER BY b.id`)
	// selectIdle reads the held tasks without a stop that applies: the limit was raised
	// before the task was held, or its month is over.
	selectIdle = db.Q[stopped](`SELECT t.id, t.id AS task_id, NULL AS session_id, t.account_id, '' AS scope, 0 AS micros,
			'' AS provider, '' AS model, '' AS key_id
		FROM tasks t LEFT JOIN budget_stops b ON b.task_id = t.id
		WHERE t.status = 'held' AND t.failure_kind IN ('budget_exhausted', 'unpriced_model')
			AND (b.id IS NULL OR b.reason = 'budget_exhausted' AND b.period <> '' AND b.period <> $1) ORDER BY t.id LIMIT 100`)
	selectIdleSessions = db.Q[stopped](`SELECT ` + stopColumns + ` FROM budget_stops b
		WHERE b.task_id IS NULL AND b.reason = 'budget_exhausted' AND b.period <> '' AND b.period <> $1 ORDER BY b.id LIMIT 100`)
	// selectUnpriced reads the stops because of a model without a price, of an account,
	// or of all accounts for ''.
	selectUnpriced = db.Q[stopped](`SELECT ` + stopColumns + ` FROM budget_stops b
		WHERE b.reason = 'unpriced_model' AND (b.account_id = $1 OR $1 = '') ORDER BY b.id`)
)

// selectRaisedArgs are the parameters of selectRaised.
type selectRaisedArgs struct {
	AccountID, Scope, Ref string
	Micros                int64
}

// addStopArgs are the parameters of addStop.
type addStopArgs struct {
	ID, AccountID                         string
	TaskID                                *string
	SessionID, Reason, Scope, Ref, Period string
	Micros                                int64
	Provider, Model, KeyID                string
	At                                    time.Time
}

// Stops reads the stops of tasks of tx.Account, or of sessions without a task, by
// their ids.
func Stops(tx *db.Tx, ids []string) ([]Stop, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.Select[Stop](tx, db.Build(`SELECT b.id, b.task_id, b.session_id, b.reason, b.scope, b.ref, b.provider, b.model, b.key_id,
		b.at,
			b.scope = 'account' AND a.spend_cap_micros IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM budget_limits l
				WHERE l.account_id = b.account_id AND l.scope = 'account' AND l.micros <= a.spend_cap_micros) AS operator
		FROM budget_stops b JOIN accounts a ON a.id = b.account_id WHERE b.account_id = `, tx.Account).In("b.id", ids))
}
