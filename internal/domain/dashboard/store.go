package dashboard

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

type row struct {
	ID, AccountID, OwnerID string
	Name, NameKey          string
	Layout                 db.JSON[[]Place]
	Builtin                *string
	Version                int64
	CreatedBy              string
	CreatedAt, UpdatedAt   time.Time
}

type widgetRow struct {
	ID, DashboardID, AccountID string
	Place                      int
	Spec                       db.JSON[Spec]
}

const (
	columns = `id, account_id, owner_id, name, name_key, layout, builtin, version, created_by, created_at, updated_at`
	widgets = `id, dashboard_id, account_id, place, spec`
)

var (
	insert = db.SWith[row](`INSERT INTO dashboards (` + columns + `) VALUES (:id, :account_id, :owner_id, :name, :name_key, :layout,
		:builtin, :version, :created_by, :created_at, :updated_at)`)
	// byID finds a board that the account shares, or that is a person's own.
	byID     = db.Q[row](`SELECT ` + columns + ` FROM dashboards WHERE account_id = $1 AND id = $2 AND owner_id IN ('', $3)`)
	lockID   = byID.ForUpdate()
	byName   = db.Q[row](`SELECT ` + columns + ` FROM dashboards WHERE account_id = $1 AND owner_id = $2 AND name_key = $3`).ForUpdate()
	builtins = db.Q[row](`SELECT ` + columns + ` FROM dashboards WHERE account_id = $1 AND builtin IS NOT NULL`).ForUpdate()
	countOf  = db.Q[int64](`SELECT COUNT(*) FROM dashboards WHERE account_id = $1 AND owner_id = $2`)
	update   = db.SWith[row](`UPDATE dashboards SET name = :name, name_key = :name_key, layout = :layout, version = :version,
		updated_at = :updated_at WHERE id = :id`)
	remove = db.S(`DELETE FROM dashboards WHERE account_id = $1 AND id = $2`)

	addWidget = db.SWith[widgetRow](`INSERT INTO dashboard_widgets (` + widgets + `) VALUES (:id, :dashboard_id, :account_id, :place, :spec)`)
	widgetsOf = db.Q[widgetRow](`SELECT ` + widgets + ` FROM dashboard_widgets WHERE account_id = $1 AND dashboard_id = $2 ORDER BY place`)
	clear     = db.S(`DELETE FROM dashboard_widgets WHERE account_id = $1 AND dashboard_id = $2`)

	// behind finds accounts whose built-in boards are not of a version.
	behind = db.Q[string](`SELECT a.id FROM accounts a WHERE a.id > $2 AND NOT EXISTS (SELECT 1 FROM dashboards d
		WHERE d.account_id = a.id AND d.builtin = 'work' AND d.version = $1) ORDER BY a.id LIMIT $3`)
	accounts = db.Q[string](`SELECT id FROM accounts WHERE id > $1 ORDER BY id LIMIT $2`)

	syncOpen = db.Q[due.Open](`SELECT id AS key, '' AS account FROM dashboard_syncs WHERE state <> 'done'`)
	addSync  = db.S(`INSERT INTO dashboard_syncs (id, state, requested_by, created_at, slot) VALUES ($1, 'queued', $2, $3, 1)`)
	endSync  = db.S(`UPDATE dashboard_syncs SET state = 'done', finished_at = $2, slot = NULL WHERE id = $1`)
)

// find reads a board that the account of the transaction shares, or that is the user's own. It
// returns fault.NotFound in the same words for one that is unknown, foreign, somebody else's or
// malformed.
func find(tx *db.Tx, q db.Query[row], boardID, userID string) (row, error) {
	if !id.Valid(boardID) {
		return row{}, fault.Missing("dashboard")
	}
	r, ok, err := q.Maybe(tx, tx.Account, boardID, userID)
	if err == nil && !ok {
		err = fault.Missing("dashboard")
	}
	return r, err
}

// list reads a page of the boards that a user sees, newest first.
func list(tx *db.Tx, p op.PageIn, userID string) ([]row, error) {
	b := db.Build(`SELECT `+columns+` FROM dashboards WHERE account_id = `, tx.Account).In("owner_id", []string{"", userID})
	return db.NewestFirst[row](tx, b, p)
}
