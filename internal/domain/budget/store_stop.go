package budget

import (
	"time"

	"yardmaster/internal/db"
)

// Stop is what keeps a task, or a session without one, from another call.
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
	Operator   bool // it is the cap of the account's operator that is the lower one
}

// stopped is a stop as those see it who let things go on.
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
	// selectRaised are the stops by a limit which is higher now.
	selectRaised = db.QWith[selectRaisedArgs, stopped](`SELECT ` + stopColumns + ` FROM budget_stops b
		WHERE b.account_id = :account_id AND b.scope = :scope AND b.ref = :ref AND b.micros < :micros
		AND b.reason = 'budget_exhausted' ORDER BY b.id`)
	// stopOfRun is the task's stop by the limit of one run, on which no money
	// need be left.
	stopOfRun = db.Q[stopped](`SELECT ` + stopColumns + ` FROM budget_stops b WHERE b.account_id = $1 AND b.task_id = $2 AND b.scope = 'run'
		AND b.reason = 'budget_exhausted'`)
	// selectStopsOfRepo are what a repository's policy stopped: limits of runs,
	// and of tasks that name none.
	selectStopsOfRepo = db.Q[stopped](`SELECT ` + stopColumns + ` FROM budget_stops b JOIN tasks t ON t.id = b.task_id
		LEFT JOIN tasks l ON b.scope = 'task' AND l.id = b.ref
		WHERE b.account_id = $1 AND t.repo_id = $2 AND b.reason = 'budget_exhausted' AND (b.scope = 'run' OR b.scope = 'task' AND l.budget_micros IS NULL)
		ORDER BY b.id`)
	// selectIdle are held tasks that nothing stops any more: their limit was
	// raised before they were held, or its month is over.
	selectIdle = db.Q[stopped](`SELECT t.id, t.id AS task_id, NULL AS session_id, t.account_id, '' AS scope, 0 AS micros, '' AS provider, '' AS model, '' AS key_id
		FROM tasks t LEFT JOIN budget_stops b ON b.task_id = t.id
		WHERE t.status = 'held' AND t.failure_kind IN ('budget_exhausted', 'unpriced_model')
			AND (b.id IS NULL OR b.reason = 'budget_exhausted' AND b.period <> '' AND b.period <> $1) ORDER BY t.id LIMIT 100`)
	selectIdleSessions = db.Q[stopped](`SELECT ` + stopColumns + ` FROM budget_stops b
		WHERE b.task_id IS NULL AND b.reason = 'budget_exhausted' AND b.period <> '' AND b.period <> $1 ORDER BY b.id LIMIT 100`)
	// selectUnpriced are the stops for want of a price: of an account, or of all
	// for ''.
	selectUnpriced = db.Q[stopped](`SELECT ` + stopColumns + ` FROM budget_stops b WHERE b.reason = 'unpriced_model' AND (b.account_id = $1 OR $1 = '') ORDER BY b.id`)
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

// Stops are what stopped tasks of tx.Account, or sessions without one.
func Stops(tx *db.Tx, ids []string) ([]Stop, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.Select[Stop](tx, db.Build(`SELECT b.id, b.task_id, b.session_id, b.reason, b.scope, b.ref, b.provider, b.model, b.key_id, b.at,
			b.scope = 'account' AND a.spend_cap_micros IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM budget_limits l WHERE l.account_id = b.account_id AND l.scope = 'account' AND l.micros <= a.spend_cap_micros) AS operator
		FROM budget_stops b JOIN accounts a ON a.id = b.account_id WHERE b.account_id = `, tx.Account).In("b.id", ids))
}
