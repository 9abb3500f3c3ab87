package oss

import (
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

const columns = `id, account_id, project_url, statement, state, note, applied_by, created_at, updated_at, decided_at`

var (
	latest = db.Q[Application](`SELECT ` + columns +
		` FROM oss_applications WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`)
	byID   = db.Q[Application](`SELECT ` + columns + ` FROM oss_applications WHERE id = $1`)
	insert = db.SWith[insertArgs](`INSERT INTO oss_applications (id, account_id, project_url, statement, state, applied_by,
		created_at, updated_at)
		VALUES (:id, :account_id, :project_url, :statement, 'pending', :applied_by, :created_at, :created_at)`)
	amend = db.SWith[amendArgs](`UPDATE oss_applications SET project_url = :project_url, statement = :statement, updated_at = :updated_at
		WHERE account_id = :account_id AND id = :id AND state = 'pending'`)
	settle = db.SWith[settleArgs](`UPDATE oss_applications SET state = :state, note = :note, updated_at = :updated_at,
		decided_at = :updated_at
		WHERE id = :id AND state = 'pending'`)
)

// settleArgs are the parameters of settle.
type settleArgs struct {
	ID, State string
	Note      *string
	UpdatedAt int64
}

// amendArgs are the parameters of amend.
type amendArgs struct {
	AccountID, ID, ProjectURL, Statement string
	UpdatedAt                            int64
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, ProjectURL, Statement string
	AppliedBy                            *string
	CreatedAt                            int64
}

func list(tx *db.Tx, p op.PageIn) ([]Application, error) {
	b := db.Build(`SELECT ` + columns + ` FROM oss_applications WHERE TRUE`)
	if p.Want("status") != "all" {
		b.Is("state", Pending)
	}
	return db.NewestFirst[Application](tx, b, p)
}
