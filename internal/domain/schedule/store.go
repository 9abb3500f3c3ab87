package schedule

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

type row struct {
	ID          string
	AccountID   string
	RepoID      *string
	Title       string
	Body        string
	Labels      db.JSON[map[string]string]
	Cron        string
	Zone        string
	WhenBusy    WhenBusy
	UserID      string
	Scopes      db.JSON[[]string]
	PausedWhy   *string
	NextAt      *time.Time
	LastAt      *time.Time
	LastOutcome *string
	LastAskID   *string
	CreatedBy   string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

const columns = `id, account_id, repo_id, title, body, labels, cron, zone, when_busy, user_id, scopes, paused_why, next_at, last_at,
	last_outcome, last_ask_id, created_by, created_at, updated_at`

var (
	insert = db.SWith[row](`INSERT INTO schedules (` + columns + `)
		VALUES (:id, :account_id, :repo_id, :title, :body, :labels, :cron, :zone, :when_busy, :user_id, :scopes, :paused_why, :next_at,
			:last_at, :last_outcome, :last_ask_id, :created_by, :created_at, :updated_at)`)
	byID   = db.Q[row](`SELECT ` + columns + ` FROM schedules WHERE account_id = $1 AND id = $2`)
	lockID = byID.ForUpdate()
	count  = db.Q[int64](`SELECT COUNT(*) FROM schedules WHERE account_id = $1`)
	update = db.SWith[row](`UPDATE schedules SET repo_id = :repo_id, title = :title, body = :body, labels = :labels, cron = :cron,
		zone = :zone, when_busy = :when_busy, user_id = :user_id, scopes = :scopes, paused_why = :paused_why, next_at = :next_at,
		last_at = :last_at, last_outcome = :last_outcome, last_ask_id = :last_ask_id, updated_at = :updated_at
		WHERE account_id = :account_id AND id = :id`)
	remove = db.S(`DELETE FROM schedules WHERE account_id = $1 AND id = $2`)

	openKeys = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM schedules WHERE next_at IS NOT NULL LIMIT $1`)
	// ahead finds the schedules that wait.
	ahead   = db.Q[row](`SELECT ` + columns + ` FROM schedules WHERE next_at > $1 AND id > $2 ORDER BY id LIMIT $3`)
	setNext = db.S(`UPDATE schedules SET next_at = $3 WHERE id = $1 AND next_at = $2`)
)

// find reads a schedule of tx.Account. It returns fault.NotFound in the same words for an
// id that is unknown, foreign or malformed.
func find(tx *db.Tx, q db.Query[row], scheduleID string) (row, error) {
	if !id.Valid(scheduleID) {
		return row{}, fault.Missing("schedule")
	}
	r, ok, err := q.Maybe(tx, tx.Account, scheduleID)
	if err == nil && !ok {
		err = fault.Missing("schedule")
	}
	return r, err
}

// list reads a page of the schedules of tx.Account, newest first.
func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	return db.NewestFirst[row](tx, db.Build(`SELECT `+columns+` FROM schedules WHERE account_id = `, tx.Account), p)
}

const readAtOnce = 100 // schedules

// ClockSetBack finds the next occurrence of each schedule anew. What was filed at a time
// that comes again is not filed twice: its ask has the key of the occurrence.
func (s *Service) ClockSetBack(tx *db.Tx) error {
	for last := ""; ; {
		rows, err := ahead.All(tx, tx.Now, last, readAtOnce)
		if err != nil {
			return err
		}
		for _, r := range rows {
			last = r.ID
			next, err := r.after(tx.Now)
			if err != nil {
				return err
			}
			if next == nil || !next.Before(*r.NextAt) {
				continue
			}
			n, err := setNext.Exec(tx, r.ID, r.NextAt, next)
			if err != nil {
				return err
			}
			if n > 0 {
				r.NextAt = next
				if err := tx.As(r.AccountID, func() error { s.order(tx, r); return nil }); err != nil {
					return err
				}
			}
		}
		if len(rows) < readAtOnce {
			return nil
		}
	}
}
