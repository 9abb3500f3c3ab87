package rollout

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

type row struct {
	ID           string
	AccountID    string
	Channel      string
	Version      string
	State        string
	Wave         int64
	SoakS        int64
	SoakUntil    *time.Time
	RunsBefore   int64
	FailedBefore int64
	RunsAfter    int64
	FailedAfter  int64
	Why          string
	StartedBy    string
	CreatedAt    time.Time
	ChangedAt    time.Time
	EndedAt      *time.Time
}

func (r row) rates() rates { return rates{r.RunsBefore, r.FailedBefore, r.RunsAfter, r.FailedAfter} }

type boxRow struct {
	RolloutID   string
	BoxID       string
	Wave        int64
	State       string
	Why         string
	FromVersion string
	Step        string
	CommandID   string
	ChangedAt   time.Time
}

type pinRow struct {
	AccountID string
	Scope     string
	Ref       string
	Channel   string
	Pinned    *bool
	Why       string
	SetBy     string
	SetAt     time.Time
}

const (
	columns = `id, account_id, channel, version, state, wave, soak_s, soak_until, runs_before, failed_before, runs_after, failed_after,
	why, started_by, created_at, changed_at, ended_at`
	// old are the rollouts of an account that are not kept: all but the newest twenty.
	old        = `SELECT id FROM rollouts WHERE account_id = $1 AND ended_at IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT 1000 OFFSET 19`
	boxColumns = `rollout_id, box_id, wave, state, why, from_version, step, command_id, changed_at`
)

var (
	insert = db.SWith[row](`INSERT INTO rollouts (` + columns + `) VALUES (:id, :account_id, :channel, :version, :state, :wave, :soak_s,
		:soak_until, :runs_before, :failed_before, :runs_after, :failed_after, :why, :started_by, :created_at, :changed_at, :ended_at)`)
	update = db.SWith[row](`UPDATE rollouts SET state = :state, wave = :wave, soak_until = :soak_until, runs_before = :runs_before,
		failed_before = :failed_before, runs_after = :runs_after, failed_after = :failed_after, why = :why, changed_at = :changed_at,
		ended_at = :ended_at WHERE account_id = :account_id AND id = :id`)
	byID   = db.Q[row](`SELECT ` + columns + ` FROM rollouts WHERE account_id = $1 AND id = $2`)
	live   = db.Q[row](`SELECT ` + columns + ` FROM rollouts WHERE account_id = $1 AND ended_at IS NULL`)
	newest = db.Q[row](`SELECT ` + columns + ` FROM rollouts WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`)
	opened = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM rollouts WHERE ended_at IS NULL LIMIT $1`)

	insertBox = db.SWith[boxRow](`INSERT INTO rollout_boxes (` + boxColumns + `) VALUES (:rollout_id, :box_id, :wave, :state, :why,
		:from_version, :step, :command_id, :changed_at)`)
	updateBox = db.SWith[boxRow](`UPDATE rollout_boxes SET state = :state, why = :why, step = :step, command_id = :command_id,
		changed_at = :changed_at WHERE rollout_id = :rollout_id AND box_id = :box_id`)
	boxesOf = db.Q[boxRow](`SELECT ` + boxColumns + ` FROM rollout_boxes WHERE rollout_id = $1 ORDER BY wave, box_id`)
	boxOf   = db.Q[boxRow](`SELECT ` + boxColumns + ` FROM rollout_boxes WHERE rollout_id = $1 AND box_id = $2`)

	dropBoxes = db.S(`DELETE FROM rollout_boxes WHERE rollout_id IN (` + old + `)`)
	dropOld   = db.S(`DELETE FROM rollouts WHERE id IN (` + old + `)`)

	pinsOf = db.Q[pinRow](`SELECT account_id, scope, ref, channel, pinned, why, set_by, set_at FROM update_pins WHERE account_id = $1
		ORDER BY scope, ref`)
	setPin = db.SWith[pinRow](`INSERT INTO update_pins (account_id, scope, ref, channel, pinned, why, set_by, set_at)
		VALUES (:account_id, :scope, :ref, :channel, :pinned, :why, :set_by, :set_at)
		ON CONFLICT (account_id, scope, ref) DO UPDATE SET channel = excluded.channel, pinned = excluded.pinned, why = excluded.why,
		set_by = excluded.set_by, set_at = excluded.set_at`)
	dropPin = db.S(`DELETE FROM update_pins WHERE account_id = $1 AND scope = $2 AND ref = $3`)
)

// forget deletes the oldest rollouts of tx.Account.
func forget(tx *db.Tx) error {
	if _, err := dropBoxes.Exec(tx, tx.Account); err != nil {
		return err
	}
	_, err := dropOld.Exec(tx, tx.Account)
	return err
}

func open(tx *db.Tx, most int) ([]due.Open, error) { return opened.All(tx, most) }
