package budget

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/money"
)

// subject is what the calls of a session count for.
type subject struct {
	AccountID  string
	RunID      *string
	TaskID     *string
	RepoID     *string
	PlanID     string
	Person     string // the person who asked for the work; empty: nobody
	Kind       string // of the session
	TaskMicros *int64 // the task's own limit
	// Served is the task that made the pull request of TaskID: another task if TaskID
	// repairs it.
	Served       *string
	ServedMicros *int64
	CapMicros    *int64 // of the account, set by the operator
	Ended        bool   // the session has
}

// limit is a limit that people set.
type limit struct {
	Scope, Ref string
	Micros     int64
}

// reservation is the stored form of a reserve: the amount that a node has set aside
// for a session. Amounts are micro-dollars.
type reservation struct {
	SessionID string
	Node      string
	AccountID string
	Amount    int64
	Used      int64 // of Amount, spent
	Meters    db.JSON[[]Meter]

	WrittenOff bool // the rest counts as spent, because the node seemed dead
	ExpiresAt  time.Time
}

// left is the amount that is set aside and not spent. It is 0 if calls have cost
// more than was set aside, which happens only if a provider counts otherwise than
// it says.
func (r reservation) left() int64 { return max(r.Amount-r.Used, 0) }

const reservationColumns = `SELECT session_id, node, account_id, amount, used, meters, written_off, expires_at FROM reservations WHERE `

var (
	// selectSubject is asked with the session of an attempt's token, never with one of a
	// request.
	selectSubject = db.Q[subject](`SELECT s.account_id, s.run_id, s.task_id, s.repo_id, COALESCE(t.plan_id, w.plan_id, '') AS plan_id,
		COALESCE(t.requested_by, s.requested_by, '') AS person, s.kind, t.budget_micros AS task_micros, w.id AS served,
		w.budget_micros AS served_micros,
		a.spend_cap_micros AS cap_micros, s.ended_at IS NOT NULL AS ended
		FROM sessions s JOIN accounts a ON a.id = s.account_id LEFT JOIN tasks t ON t.id = s.task_id
		LEFT JOIN pulls p ON p.id = t.pr_id LEFT JOIN tasks w ON w.id = p.task_id WHERE s.id = $1` + giftSubject + keySubject)
	// selectLimits reads the limits of an account, of a person in it, of a repository and of a plan.
	selectLimits = db.QWith[limitsArgs, limit](`SELECT scope, ref, micros FROM budget_limits WHERE account_id = :account_id
		AND (scope, ref) IN (('` + Account + `', :account_id), ('` + Member + `', :user_id), ('` + Repo + `', :repo_id),
		('` + Plan + `', :plan_id))`)
	selectLimit = db.Q[int64](`SELECT micros FROM budget_limits WHERE account_id = $1 AND scope = $2 AND ref = $3`)
	setLimit    = db.SWith[setLimitArgs](`INSERT INTO budget_limits (account_id, scope, ref, micros)
		VALUES (:account_id, :scope, :ref, :micros)
		ON CONFLICT (account_id, scope, ref) DO UPDATE SET micros = EXCLUDED.micros`)
	clearLimit = db.S(`DELETE FROM budget_limits WHERE account_id = $1 AND scope = $2 AND ref = $3`)

	selectBalance = db.QWith[selectBalanceArgs, balance](`SELECT reserved, spent FROM budgets
		WHERE account_id = :account_id AND scope = :scope AND ref = :ref AND period = :period`)
	openMeter = db.SWith[openMeterArgs](`INSERT INTO budgets (account_id, scope, ref, period)
		VALUES (:account_id, :scope, :ref, :period)
		ON CONFLICT DO NOTHING`)
	moveMeter = db.SWith[moveMeterArgs](`UPDATE budgets SET reserved = reserved + :reserved, spent = spent + :spent
		WHERE account_id = :account_id AND scope = :scope AND ref = :ref AND period = :period`)

	// A transaction that changes meters locks its reservations first.
	selectReservation = db.Q[reservation](reservationColumns + `session_id = $1 AND node = $2`).ForUpdate()
	putReservation    = db.SWith[putReservationArgs](`INSERT INTO reservations (session_id, node, account_id, amount, used, meters,
		expires_at)
		VALUES (:session_id, :node, :account_id, :amount, :used, :meters, :expires_at)
		ON CONFLICT (session_id, node) DO UPDATE SET amount = EXCLUDED.amount, meters = EXCLUDED.meters,
		expires_at = EXCLUDED.expires_at`)
	setAmount = db.S(`UPDATE reservations SET amount = $3 WHERE session_id = $1 AND node = $2`)
	// selectEnded reads the sessions, and the gifts, of a node's reservations that have ended.
	selectEnded = db.Q[string](`SELECT r.session_id FROM reservations r JOIN sessions s ON s.id = r.session_id
		WHERE r.node = $1 AND s.ended_at IS NOT NULL
		UNION ALL SELECT r.session_id FROM reservations r JOIN donations d ON d.id = r.session_id
		WHERE r.node = $1 AND d.parked_at IS NOT NULL`)
	addUsed          = db.S(`UPDATE reservations SET used = used + $3 WHERE session_id = $1 AND node = $2`)
	dropReservation  = db.S(`DELETE FROM reservations WHERE session_id = $1 AND node = $2`)
	keepAlive        = db.S(`UPDATE reservations SET expires_at = $2 WHERE node = $1 AND written_off = FALSE`)
	writeOff         = db.S(`UPDATE reservations SET written_off = TRUE, expires_at = $3 WHERE session_id = $1 AND node = $2`)
	unmarkWrittenOff = db.S(`UPDATE reservations SET written_off = FALSE, expires_at = $3 WHERE session_id = $1 AND node = $2`)
	selectDue        = db.Q[reservation](reservationColumns +
		`expires_at < $1 ORDER BY account_id, session_id, node LIMIT 100`).SkipLocked()

	addMinute = db.SWith[addMinuteArgs](`INSERT INTO spend_minutes (account_id, minute, session_id, calls, unpriced, cost_micros)
		VALUES (:account_id, :minute, :session_id, :calls, :unpriced, :cost_micros)
		ON CONFLICT (account_id, minute, session_id) DO UPDATE SET calls = spend_minutes.calls + EXCLUDED.calls,
		unpriced = spend_minutes.unpriced + EXCLUDED.unpriced,
		cost_micros = CASE WHEN EXCLUDED.cost_micros IS NULL THEN spend_minutes.cost_micros
		ELSE COALESCE(spend_minutes.cost_micros, 0) + EXCLUDED.cost_micros END`)
	// dropMinutes goes by account, as the key of the table does, and so reads only rows
	// that it deletes.
	dropMinutes = db.S(`DELETE FROM spend_minutes WHERE account_id IN (SELECT id FROM accounts) AND minute < $1`)

	balancesOfMembers = db.Q[memberBalance](`SELECT ref, reserved, spent FROM budgets
		WHERE account_id = $1 AND scope = 'member' AND period = $2`)
	limitsOfMembers = db.Q[limit](`SELECT scope, ref, micros FROM budget_limits WHERE account_id = $1 AND scope = 'member'`)
)

// PlanLimit is what the tasks of a plan of tx.Account may spend together, in micro-dollars;
// nil without a limit.
func PlanLimit(tx *db.Tx, planID string) (*int64, error) {
	micros, ok, err := selectLimit.Maybe(tx, tx.Account, Plan, planID)
	if err != nil || !ok {
		return nil, err
	}
	return &micros, nil
}

// addMinuteArgs are the parameters of addMinute.
type addMinuteArgs struct {
	AccountID       string
	Minute          time.Time
	SessionID       string
	Calls, Unpriced int64
	CostMicros      *int64
}

// putReservationArgs are the parameters of putReservation.
type putReservationArgs struct {
	SessionID, Node, AccountID string
	Amount, Used               int64
	Meters                     db.JSON[[]Meter]
	ExpiresAt                  time.Time
}

// moveMeterArgs are the parameters of moveMeter.
type moveMeterArgs struct {
	AccountID, Scope, Ref, Period string
	Reserved, Spent               int64
}

// openMeterArgs are the parameters of openMeter.
type openMeterArgs struct {
	AccountID, Scope, Ref, Period string
}

// selectBalanceArgs are the parameters of selectBalance.
type selectBalanceArgs struct {
	AccountID, Scope, Ref, Period string
}

// setLimitArgs are the parameters of setLimit.
type setLimitArgs struct {
	AccountID, Scope, Ref string
	Micros                int64
}

type (
	memberBalance struct {
		Ref             string
		Reserved, Spent int64
	}
	reservedOf struct {
		TaskID string
		Micros int64
	}
)

// lockBalances reads the balances of meters and locks them, and opens those meters
// that have none.
func lockBalances(tx *db.Tx, account string, meters []Meter) ([]balance, error) {
	out := make([]balance, len(meters))
	for i, m := range meters {
		of := selectBalanceArgs{AccountID: account, Scope: m.Scope, Ref: m.Ref, Period: m.Period}
		b, ok, err := selectBalance.ForUpdate().Maybe(tx, of)
		if err == nil && !ok {
			if _, err = openMeter.Exec(tx, openMeterArgs(of)); err == nil {
				b, err = selectBalance.ForUpdate().One(tx, of)
			}
		}
		if err != nil {
			return nil, err
		}
		out[i] = b
	}
	return out, nil
}

// readBalances is lockBalances without the locks; a meter that was never used has 0.
func readBalances(tx *db.Tx, account string, meters []Meter) (out []balance, err error) {
	out = make([]balance, len(meters))
	for i, m := range meters {
		of := selectBalanceArgs{AccountID: account, Scope: m.Scope, Ref: m.Ref, Period: m.Period}
		if out[i], _, err = selectBalance.Maybe(tx, of); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addToMeters adds amounts, which may be negative, to all of the meters.
func addToMeters(tx *db.Tx, account string, meters []Meter, reserved, spent int64) error {
	for _, m := range meters {
		if _, err := moveMeter.Exec(tx, moveMeterArgs{
			AccountID: account, Scope: m.Scope, Ref: m.Ref, Period: m.Period, Reserved: reserved, Spent: spent,
		}); err != nil {
			return err
		}
	}
	return nil
}

// undoWriteOff sets aside again the rest that was written off; it does nothing to
// another reservation.
func (r *reservation) undoWriteOff(tx *db.Tx) error {
	if !r.WrittenOff {
		return nil
	}
	r.WrittenOff = false
	if err := addToMeters(tx, r.AccountID, r.Meters.V, r.left(), -r.left()); err != nil {
		return err
	}
	if err := r.storeDay(tx, r.ExpiresAt.Add(-writtenOffTime), -r.left()); err != nil {
		return err
	}
	_, err := unmarkWrittenOff.Exec(tx, r.SessionID, r.Node, tx.Now.Add(leaseTime))
	return err
}

// storeDay counts what is written off of a reservation in the ledger of days, where no call
// stands for it.
func (r *reservation) storeDay(tx *db.Tx, at time.Time, micros int64) error {
	if micros == 0 || r.ofKey() {
		return nil
	}
	_, err := addDay.Exec(tx, addDayArgs{AccountID: r.AccountID, Day: dayOf(at), SessionID: r.SessionID, CostMicros: micros})
	return err
}

// ofKey tells whether the reservation is for the limit of a key, beside those of sessions.
func (r *reservation) ofKey() bool { return len(r.Meters.V) > 0 && r.Meters.V[0].Scope == Key }

// close ends a reservation. Of what is left of it, the given amount counts as spent,
// and the rest is free.
func (r reservation) close(tx *db.Tx, spent int64) error {
	if err := r.undoWriteOff(tx); err != nil {
		return err
	}
	spent = min(spent, r.left())
	if err := addToMeters(tx, r.AccountID, r.Meters.V, -r.left(), spent); err != nil {
		return err
	}
	if err := r.storeDay(tx, tx.Now, spent); err != nil {
		return err
	}
	_, err := dropReservation.Exec(tx, r.SessionID, r.Node)
	return err
}

// limitOf is a limit of tx.Account that people set; nil: there is none.
func limitOf(tx *db.Tx, scope, ref string) (*int64, error) {
	n, ok, err := selectLimit.Maybe(tx, tx.Account, scope, ref)
	if err != nil || !ok {
		return nil, err
	}
	return &n, nil
}

// storeLimit sets a limit of tx.Account, or clears it for nil.
func storeLimit(tx *db.Tx, scope, ref string, micros *int64) (err error) {
	if micros == nil {
		_, err = clearLimit.Exec(tx, tx.Account, scope, ref)
	} else {
		_, err = setLimit.Exec(tx, setLimitArgs{AccountID: tx.Account, Scope: scope, Ref: ref, Micros: *micros})
	}
	return err
}

// SetAside is the amounts that are set aside for calls of tasks of tx.Account, in
// micro-dollars by task. Tasks for which nothing was ever set aside are left out.
func SetAside(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	if len(taskIDs) == 0 {
		return nil, nil
	}
	rows, err := db.Select[reservedOf](tx, db.Build(`SELECT ref AS task_id, reserved AS micros FROM budgets
		WHERE scope = 'task' AND period = '' AND account_id = `, tx.Account).In("ref", taskIDs))
	out := make(map[string]int64, len(rows))
	for _, r := range rows {
		out[r.TaskID] = r.Micros
	}
	return out, err
}

// usageOfMembers lists all members of tx.Account by login, with the amounts of their
// work in a period and their limits.
func usageOfMembers(tx *db.Tx, period string) ([]MemberUsage, error) {
	members, err := people.Roster(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	balances, err := balancesOfMembers.All(tx, tx.Account, period)
	if err != nil {
		return nil, err
	}
	limits, err := limitsOfMembers.All(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	out := make([]MemberUsage, len(members))
	at := make(map[string]*MemberUsage, len(members))
	for i, m := range members {
		out[i] = MemberUsage{UserID: m.UserID, Login: m.Login, Spent: money.Dollars(0), Reserved: money.Dollars(0)}
		at[m.UserID] = &out[i]
	}
	for _, b := range balances {
		if m := at[b.Ref]; m != nil { // nil: the person has left the account
			m.Spent, m.Reserved = money.Dollars(b.Spent), money.Dollars(b.Reserved)
		}
	}
	for _, l := range limits {
		if m := at[l.Ref]; m != nil {
			m.CapUSD = money.USD(&l.Micros)
		}
	}
	return out, nil
}

// minutesTime is how long the rows of minutes are kept.
const minutesTime = 93 * 24 * time.Hour

// limitsArgs are the parameters of selectLimits.
type limitsArgs struct{ AccountID, UserID, RepoID, PlanID string }
