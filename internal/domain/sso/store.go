package sso

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal/keys"
)

type row struct {
	AccountID string
	Issuer    string
	ClientID  string
	Sealed    string
	Domains   db.JSON[[]string]
	Role      policy.Role
	CreatedAt time.Time
	UpdatedAt time.Time
}

var (
	byAccount = db.Q[row](`SELECT account_id, issuer, client_id, sealed, domains, role, created_at, updated_at FROM org_sso WHERE account_id = $1`)
	set       = db.S(`INSERT INTO org_sso (account_id, issuer, client_id, sealed, domains, role, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
		ON CONFLICT (account_id) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id, sealed = excluded.sealed,
			domains = excluded.domains, role = excluded.role, updated_at = excluded.updated_at`)
	remove  = db.S(`DELETE FROM org_sso WHERE account_id = $1`)
	loginOf = db.Q[string](`SELECT login FROM accounts WHERE id = $1`)
	byLogin = db.Q[row](`SELECT s.account_id, s.issuer, s.client_id, s.sealed, s.domains, s.role, s.created_at, s.updated_at
		FROM org_sso s JOIN accounts a ON a.id = s.account_id WHERE a.login = $1`)
	anybody = db.Q[int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM org_sso LIMIT 1) AS s`)

	// Sessions that the account's provider vouched for, of those who are members.
	dropSessions = db.Q[string](`DELETE FROM signins WHERE sso_account_id = $1 AND user_id IN (SELECT user_id FROM memberships WHERE account_id = $1) RETURNING hash`)
)

// Any tells whether some account has a sign-in of its own.
func Any(tx *db.Tx) (bool, error) {
	n, err := anybody.One(tx)
	return n > 0, err
}

// Sealed are the client secrets at identity providers.
var Sealed = keys.Column{
	Table: "org_sso", Name: "sealed",
	Count:   db.Q[keys.Held](keys.Tally + `org_sso GROUP BY 1`),
	Rows:    db.Q[keys.Row](`SELECT account_id AS key, account_id AS account, sealed FROM org_sso WHERE account_id > $1 ORDER BY account_id LIMIT $2`),
	Put:     db.S(`UPDATE org_sso SET sealed = $3 WHERE account_id = $1 AND sealed = $2`),
	Purpose: func(r keys.Row) string { return purpose(r.Account) },
}
