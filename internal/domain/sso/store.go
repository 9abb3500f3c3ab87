package sso

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
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
	byAccount = db.Q[row](`SELECT account_id, issuer, client_id, sealed, domains, role, created_at, updated_at FROM org_sso
		WHERE account_id = $1`)
	set = db.SWith[setArgs](`INSERT INTO org_sso (account_id, issuer, client_id, sealed, domains, role, created_at, updated_at)
		VALUES (:account_id, :issuer, :client_id, :sealed, :domains, :role, :created_at, :created_at)
		ON CONFLICT (account_id) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id,
		sealed = excluded.sealed, domains = excluded.domains, role = excluded.role, updated_at = excluded.updated_at`)
	remove  = db.S(`DELETE FROM org_sso WHERE account_id = $1`)
	anybody = db.Q[int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM org_sso LIMIT 1) AS s`)
)

// setArgs are the parameters of set.
type setArgs struct {
	AccountID, Issuer, ClientID, Sealed string
	Domains                             db.JSON[[]string]
	Role                                string
	CreatedAt                           int64
}

// byLogin finds the configuration of an account by the account's login.
func byLogin(tx *db.Tx, login string) (row, bool, error) {
	account, ok, err := people.AccountByLogin(tx, login)
	if err != nil || !ok {
		return row{}, false, err
	}
	return byAccount.Maybe(tx, account)
}

// Any tells whether any account has a configuration.
func Any(tx *db.Tx) (bool, error) {
	n, err := anybody.One(tx)
	return n > 0, err
}

// Sealed is the column of the sealed client secrets.
var Sealed = keys.Column{
	Table: "org_sso", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `org_sso GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT account_id AS key, account_id AS account, sealed FROM org_sso
		WHERE account_id > $1 ORDER BY account_id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE org_sso SET sealed = $3 WHERE account_id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Account) },
}
