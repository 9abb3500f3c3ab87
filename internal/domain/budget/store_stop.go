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
	Title      string // of the task whose budget it is; empty: it is another one's
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
	Reason    string // empty: the task is held, and no stop is known
	Scope     string
	Ref       string
	Period    string
	Need      int64 // what the call that was refused costs at least
	Provider  string
	Model     string
	KeyID     string // of a stop by the limits of keys: the others, beside Ref
	At        time.Time
}

const (
	stopColumns = `SELECT b.id, b.task_id, b.session_id, b.account_id, b.reason, b.scope, b.ref, b.period, b.need, b.provider,
		b.model, b.key_id, b.at FROM budget_stops b `
	// maxLook is the number of stopped tasks that one look goes through.
	maxLook = 1000
)

var (
	addStop = db.SWith[addStopArgs](`INSERT INTO budget_stops (id, account_id, task_id, session_id, reason, scope, ref, period,
		micros, need, provider, model, key_id, at)
		VALUES (:id, :account_id, :task_id, :session_id, :reason, :scope, :ref, :period, :micros, :need, :provider, :model, :key_id, :at)
		ON CONFLICT (id) DO UPDATE SET session_id = EXCLUDED.session_id, reason = EXCLUDED.reason, scope = EXCLUDED.scope,
		ref = EXCLUDED.ref, period = EXCLUDED.period, micros = EXCLUDED.micros, need = EXCLUDED.need, provider = EXCLUDED.provider,
		model = EXCLUDED.model, key_id = EXCLUDED.key_id, at = EXCLUDED.at`)
	dropStop = db.S(`DELETE FROM budget_stops WHERE id = $1`)
	// stopOfRun reads a task's stop by the limit of one run. The task's next run has a
	// meter of its own.
	stopOfRun = db.Q[stopped](stopColumns + `WHERE b.account_id = $1 AND b.task_id = $2 AND b.scope = 'run'
		AND b.reason = 'budget_exhausted'`)
	// stopsOf reads the stops of an account.
	stopsOf = db.Q[stopped](stopColumns + `WHERE b.account_id = $1 ORDER BY b.id`)
	// selectHeld reads the held tasks behind one, with what has stopped them, if that is known
	// still.
	selectHeld = db.Q[stopped](`SELECT t.id, t.id AS task_id, b.session_id, t.account_id, COALESCE(b.reason, '') AS reason,
			COALESCE(b.scope, '') AS scope, COALESCE(b.ref, '') AS ref, COALESCE(b.period, '') AS period, COALESCE(b.need, 0) AS need,
			COALESCE(b.provider, '') AS provider, COALESCE(b.model, '') AS model, COALESCE(b.key_id, '') AS key_id,
			COALESCE(b.at, t.created_at) AS at
		FROM tasks t LEFT JOIN budget_stops b ON b.task_id = t.id
		WHERE t.status = 'held' AND t.failure_kind IN ('budget_exhausted', 'unpriced_model') AND t.id > $1
		ORDER BY t.id LIMIT ` + maxLookText)
	// selectSessions reads the stops of sessions without a task.
	selectSessions = db.Q[stopped](stopColumns + `WHERE b.task_id IS NULL ORDER BY b.at LIMIT ` + maxLookText)
)

const maxLookText = "1000" // maxLook

// addStopArgs are the parameters of addStop.
type addStopArgs struct {
	ID, AccountID                         string
	TaskID                                *string
	SessionID, Reason, Scope, Ref, Period string
	Micros, Need                          int64
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
		b.at, COALESCE(w.title, r.owner || '/' || r.name, '') AS title,
			b.scope = 'account' AND a.spend_cap_micros IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM budget_limits l
				WHERE l.account_id = b.account_id AND l.scope = 'account' AND l.micros <= a.spend_cap_micros) AS operator
		FROM budget_stops b JOIN accounts a ON a.id = b.account_id
		LEFT JOIN tasks w ON b.scope IN ('task', 'work') AND w.id = b.ref AND w.account_id = b.account_id
		LEFT JOIN repos r ON b.scope = 'repo' AND r.id = b.ref AND r.account_id = b.account_id WHERE b.account_id = `, tx.Account).In("b.id", ids))
}

// spentNearly is the condition that four fifths of the limit l are spent by b, of which nobody was
// told by w.
const spentNearly = ` LEFT JOIN budget_warnings w ON w.account_id = l.account_id AND w.scope = l.scope AND w.ref = l.ref AND w.period = b.period
	WHERE l.micros > 0 AND b.spent * 5 >= l.micros * 4 AND (w.micros IS NULL OR w.micros <> l.micros)`

var (
	// nearLimits is asked for all accounts, with the month.
	nearLimits = db.Q[nearly](`SELECT l.account_id, l.scope, l.ref, b.period, l.micros, b.spent FROM budget_limits l
		JOIN budgets b ON b.account_id = l.account_id AND b.scope = l.scope AND b.ref = l.ref
		AND b.period = CASE l.scope WHEN '` + Plan + `' THEN '' ELSE $1 END` + spentNearly + `
		UNION ALL SELECT l.account_id, l.scope, l.ref, b.period, l.micros, b.spent FROM (
			SELECT id AS account_id, '` + nearOperator + `' AS scope, id AS ref, spend_cap_micros AS micros FROM accounts
			WHERE spend_cap_micros IS NOT NULL) l
		JOIN budgets b ON b.account_id = l.account_id AND b.scope = '` + Account + `' AND b.ref = l.ref AND b.period = $1` + spentNearly + `
		ORDER BY 1, 2, 3 LIMIT 100`)
	// openKey opens the meter of a key that had no limit yet, with what the month's calls have cost.
	openKey = db.SWith[openKeyArgs](`INSERT INTO budgets (account_id, scope, ref, period, spent)
		SELECT :account_id, '` + Key + `', :ref, :period, COALESCE(SUM(cost_micros), 0) FROM spend_days
		WHERE account_id = :account_id AND key_id = :ref AND day >= :first AND day < :next
		ON CONFLICT DO NOTHING`)
	limitsOfKeys   = db.Q[limit](`SELECT scope, ref, micros FROM budget_limits WHERE account_id = $1 AND scope = '` + Key + `'`)
	balancesOfKeys = db.Q[memberBalance](`SELECT ref, reserved, spent FROM budgets
		WHERE account_id = $1 AND scope = '` + Key + `' AND period = $2`)
	noteWarning = db.SWith[nearly](`INSERT INTO budget_warnings (account_id, scope, ref, period, micros)
		VALUES (:account_id, :scope, :ref, :period, :micros)
		ON CONFLICT (account_id, scope, ref, period) DO UPDATE SET micros = EXCLUDED.micros WHERE budget_warnings.micros <> EXCLUDED.micros`)
)

// openKeyArgs are the parameters of openKey.
type openKeyArgs struct {
	AccountID, Ref, Period string
	First, Next            int64 // days
}
