package access

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

type row struct {
	ID         string
	Email      string
	Name       string
	Org        string
	CreatedAt  time.Time
	InvitedAt  *time.Time
	DeclinedAt *time.Time
}

var (
	// An address has at most one application that is not declined.
	apply = db.SWith[applyArgs](`INSERT INTO access_requests (id, email, name, org, created_at)
		VALUES (:id, :email, :name, :org, :created_at)
		ON CONFLICT (email)
		WHERE declined_at IS NULL DO NOTHING`)
	byEmail = db.Q[row](`SELECT id, email, name, org, created_at, invited_at, declined_at FROM access_requests
		WHERE email = $1 AND declined_at IS NULL`)
	byID    = db.Q[row](`SELECT id, email, name, org, created_at, invited_at, declined_at FROM access_requests WHERE id = $1`)
	decline = db.S(`UPDATE access_requests SET declined_at = $2, decided_by = $3
		WHERE id = $1 AND invited_at IS NULL AND declined_at IS NULL`)

	invited = db.S(`UPDATE access_requests SET invited_at = $2, decided_by = $3
		WHERE id = $1 AND invited_at IS NULL AND declined_at IS NULL`)
	reopen = db.S(`UPDATE access_requests SET invited_at = NULL, decided_by = NULL
		WHERE email = $1 AND declined_at IS NULL AND invited_at IS NOT NULL`)
)

// applyArgs are the parameters of apply.
type applyArgs struct {
	ID, Email, Name, Org string
	CreatedAt            int64
}

func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	b := db.Build(`SELECT id, email, name, org, created_at, invited_at, declined_at FROM access_requests WHERE created_at >= `, 0)
	switch p.Want("status") {
	case Pending, "":
		b.And("invited_at IS NULL AND declined_at IS NULL")
	case Invited:
		b.And("invited_at IS NOT NULL AND declined_at IS NULL")
	case Declined:
		b.And("declined_at IS NOT NULL")
	}
	if p.Q != "" {
		b.Contains("(email || ' ' || name || ' ' || org)", p.Q)
	}
	return db.NewestFirst[row](tx, b, p)
}
