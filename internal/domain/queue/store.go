package queue

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/protocol"
)

var (
	selectSeatUse = db.Q[inFlight](`SELECT COUNT(*) AS n, MAX(claimed_at) AS newest FROM tasks
		WHERE account_id = $1 AND status IN ('claimed', 'running') AND kind <> 'ci'`)

	countHeld = db.Q[int64](`SELECT COUNT(*) FROM tasks WHERE status IN ('claimed', 'running') AND box_id = $1`)

	// selectFleet lists the boxes that serve an account. Its rows without a target count
	// the tasks of all accounts that a box has, and those of them that take seats of the
	// account. The parameter is cast because SQLite, once it has statistics, plans a
	// statement anew for each value of a bare parameter.
	selectFleet = db.Q[fleetRow](`SELECT ` + boxColumns +
		`, CAST(0 AS BIGINT) AS n, CAST(NULL AS BIGINT) AS newest, CAST(0 AS BIGINT) AS seats, CAST(NULL AS BIGINT) AS seated
		FROM boxes b CROSS JOIN (SELECT CAST($1 AS TEXT) AS account_id) w WHERE b.state <> 'revoked' AND ` + fleet.May + `
		UNION ALL SELECT COALESCE(box_id, ''), '', '', '', NULL, '', '', '', 0, '[]', '[]', '{}', NULL, NULL, FALSE, COUNT(*), MAX(claimed_at),
		COUNT(CASE WHEN account_id = CAST($1 AS TEXT) AND kind <> 'ci' THEN 1 END),
		MAX(CASE WHEN account_id = CAST($1 AS TEXT) AND kind <> 'ci' THEN claimed_at END)
		FROM tasks WHERE status IN ('claimed', 'running') GROUP BY box_id`)

	selectBox = db.Q[boxRow](`SELECT ` + boxColumns + ` FROM boxes b WHERE id = $1 AND state <> 'revoked'`)

	lockBox = db.Q[string](`SELECT id FROM boxes WHERE id = $1`).ForUpdate()

	selectDepth = db.Q[int64](`SELECT pending FROM queue_depths WHERE account_id = $1`).Kept()
	// selectQueues lists the accounts that have a queue, the deepest first.
	selectQueues = db.Q[queue](`SELECT account_id, pending FROM queue_depths WHERE pending > 0 ORDER BY pending DESC, account_id`)
	// countParked counts the held tasks of all accounts by what parked them. CROSS has
	// SQLite go through the accounts, so that it reads an index and not all tasks.
	countParked = db.Q[parkedCount](`SELECT COALESCE(t.failure_kind, '') AS failure_kind, COUNT(*) AS n FROM queue_depths q CROSS
		JOIN tasks t
		WHERE t.account_id = q.account_id AND t.status = 'held' GROUP BY COALESCE(t.failure_kind, '')`)
	addDepth = db.S(`INSERT INTO queue_depths (account_id, pending) VALUES ($1, $2)
		ON CONFLICT (account_id) DO UPDATE SET pending = queue_depths.pending + excluded.pending`)
	lockDepth = db.Q[int64](`SELECT pending FROM queue_depths WHERE account_id = $1`).ForUpdate()
)

const boxColumns = `b.id, b.name, b.account_id, b.owner_target, b.owner_id, b.state, b.presence, COALESCE(b.unfit, '') AS unfit, b.slots,
	b.agents, b.isolation, b.isolation_holds, b.last_beat_at, b.unfit_for, ` + fleet.IsLent + ` AS lent`

type (
	// queue is how many pending tasks an account has.
	queue struct {
		AccountID string
		Pending   int64
	}
	parkedCount struct {
		FailureKind string
		N           int64
	}

	inFlight struct {
		N      int64
		Newest *time.Time
	}
	// fleetRow is a box, or the tasks of the box with its ID; ID is empty for tasks
	// without a box.
	fleetRow struct {
		boxRow
		N      int64
		Newest *time.Time
		Seats  int64
		Seated *time.Time
	}
	boxRow struct {
		ID          string
		Name        string
		AccountID   string
		OwnerTarget string
		OwnerID     *string
		State       string
		Presence    string
		Unfit       string
		Slots       int64
		Agents      db.JSON[[]protocol.AgentInfo]
		Isolation   db.JSON[[]string]
		Holds       db.JSON[map[string][]string] `db:"isolation_holds"`
		LastBeatAt  *time.Time
		UnfitFor    *db.JSON[map[string]string]
		Lent        bool
	}
)

func (r *fleetRow) isBox() bool { return r.OwnerTarget != "" }

func (r boxRow) box() Box {
	b := Box{ID: r.ID, Name: r.Name, AccountID: r.AccountID, Target: r.OwnerTarget, Enrolled: r.State == "enrolled",
		Online: r.Presence == "online", Left: r.Presence == "left",
		Unfit: r.Unfit, Slots: r.Slots, Isolation: r.Isolation.V, Holds: r.Holds.V}
	if r.OwnerTarget == "user" && r.OwnerID != nil {
		b.OwnerID = *r.OwnerID
	}
	if r.Lent {
		b.Target, b.OwnerID = fleet.Lent, ""
	}
	if r.UnfitFor != nil {
		b.UnfitFor = r.UnfitFor.V
	}
	for _, a := range r.Agents.V {
		if a.Missing == "" {
			b.Agents = append(b.Agents, a.Name)
			continue
		}
		if b.Missing == nil {
			b.Missing = map[string]string{}
		}
		b.Missing[a.Name] = a.Missing
	}
	if r.LastBeatAt != nil {
		b.LastBeat = *r.LastBeatAt
	}
	return b
}

// LockBox keeps other transactions from changing a box until tx ends, see task.Lock.
func LockBox(tx *db.Tx, boxID string) error {
	_, _, err := lockBox.Maybe(tx, boxID)
	return err
}
