package hosttoken

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/seal/keys"
)

type row struct {
	ID        string
	AccountID string
	UserID    string
	Host      string
	Login     string
	Masked    string
	Sealed    string
	Grants    db.JSON[[]granted]
	ExpiresAt *time.Time
	CheckedAt time.Time
	RefusedAt *time.Time
	CreatedAt time.Time
}

// granted is what a host said of a repository.
type granted struct {
	Repo string    `json:"repo"` // id
	Push bool      `json:"push"`
	At   time.Time `json:"at"`
}

// binding is a row of repo_bindings.
type binding struct {
	UserID    string
	RepoID    string
	TokenID   string
	CheckedAt *time.Time
	RefusedAt *time.Time
	CreatedAt time.Time
}

const (
	columns  = `id, account_id, user_id, host, login, masked, sealed, grants, expires_at, checked_at, refused_at, created_at`
	bindings = `user_id, repo_id, token_id, checked_at, refused_at, created_at`
)

var (
	byUser = db.Q[row](`SELECT ` + columns + ` FROM host_tokens WHERE account_id = $1 AND user_id = $2`)
	ofUser = db.Q[row](`SELECT ` + columns + ` FROM host_tokens WHERE user_id = $1 ORDER BY account_id`)
	put    = db.SWith[putArgs](`INSERT INTO host_tokens (id, account_id, user_id, host, login, host_user_id, masked, sealed, grants,
		expires_at, checked_at, created_at)
		VALUES (:id, :account_id, :user_id, :host, :login, :host_user_id, :masked, :sealed, :grants, :expires_at, :now, :now)
		ON CONFLICT (account_id, user_id) DO UPDATE SET id = excluded.id, host = excluded.host, login = excluded.login,
		host_user_id = excluded.host_user_id, masked = excluded.masked, sealed = excluded.sealed, grants = excluded.grants, expires_at = excluded.expires_at,
		checked_at = excluded.checked_at, refused_at = NULL, created_at = excluded.created_at`)
	drop    = db.S(`DELETE FROM host_tokens WHERE account_id = $1 AND user_id = $2`)
	checked = db.SWith[checkedArgs](`UPDATE host_tokens SET grants = :grants, login = :login, host_user_id = :host_user_id, expires_at = :expires_at, checked_at = :now,
		refused_at = NULL WHERE account_id = :account_id AND id = :id`)
	tokenRefused = db.S(`UPDATE host_tokens SET refused_at = $3 WHERE account_id = $1 AND id = $2 AND refused_at IS NULL`)

	// userAt prefers the permanent id. A login alone may have another owner by now.
	userAt = db.QWith[userAtArgs, struct{ UserID, HostUserID string }](`SELECT user_id, host_user_id FROM host_tokens
		WHERE account_id = :account_id AND host = :host AND (host_user_id <> '' AND host_user_id = :host_user_id
			OR host_user_id = '' AND LOWER(login) = :login)
		ORDER BY CASE WHEN host_user_id = '' THEN 1 ELSE 0 END, user_id LIMIT 1`)
	loginAt = db.Q[string](`SELECT login FROM host_tokens WHERE account_id = $1 AND user_id = $2 AND host = $3`)

	boundTo = db.Q[binding](`SELECT ` + bindings + ` FROM repo_bindings WHERE account_id = $1 AND user_id = $2 AND repo_id = $3`)
	boundOf = db.Q[binding](`SELECT ` + bindings + ` FROM repo_bindings WHERE account_id = $1 AND user_id = $2
		ORDER BY created_at, repo_id`)
	bind = db.SWith[bindArgs](`INSERT INTO repo_bindings (account_id, user_id, repo_id, token_id, checked_at, created_at)
		VALUES (:account_id, :user_id, :repo_id, :token_id, :now, :now)
		ON CONFLICT (account_id, user_id, repo_id) DO UPDATE SET token_id = excluded.token_id, checked_at = excluded.checked_at,
		refused_at = NULL`)
	// rebind hands the bindings of a person to their new token, of which nothing is known
	// there.
	rebind      = db.S(`UPDATE repo_bindings SET token_id = $3, checked_at = NULL, refused_at = NULL WHERE account_id = $1 AND user_id = $2`)
	free        = db.S(`DELETE FROM repo_bindings WHERE account_id = $1 AND user_id = $2 AND repo_id = $3`)
	freeAll     = db.S(`DELETE FROM repo_bindings WHERE account_id = $1 AND user_id = $2`)
	repoRefused = db.SWith[repoRefusedArgs](`UPDATE repo_bindings SET refused_at = :now WHERE account_id = :account_id AND user_id = :user_id
		AND repo_id = :repo_id AND token_id = :token_id AND refused_at IS NULL`)
)

// userAtArgs are the parameters of userAt.
type userAtArgs struct{ AccountID, Host, HostUserID, Login string }

// putArgs are the parameters of put.
type putArgs struct {
	ID, AccountID, UserID, Host, Login, HostUserID, Masked, Sealed string
	Grants                                                         db.JSON[[]granted]
	ExpiresAt                                                      *time.Time
	Now                                                            time.Time
}

// checkedArgs are the parameters of checked.
type checkedArgs struct {
	AccountID, ID, Login, HostUserID string
	Grants                           db.JSON[[]granted]
	ExpiresAt                        *time.Time
	Now                              time.Time
}

// bindArgs are the parameters of bind.
type bindArgs struct {
	AccountID, UserID, RepoID, TokenID string
	Now                                time.Time
}

// repoRefusedArgs are the parameters of repoRefused.
type repoRefusedArgs struct {
	AccountID, UserID, RepoID, TokenID string
	Now                                time.Time
}

// forget deletes the token of a user in tx.Account with its bindings. It returns false
// if there was none.
func forget(tx *db.Tx, userID string) (bool, error) {
	if _, err := freeAll.Exec(tx, tx.Account, userID); err != nil {
		return false, err
	}
	n, err := drop.Exec(tx, tx.Account, userID)
	return n > 0, err
}

// Sealed is the column of the sealed tokens.
var Sealed = keys.Column{
	Table: "host_tokens", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `host_tokens GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT id AS key, account_id AS account, sealed FROM host_tokens
		WHERE id > $1 ORDER BY id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE host_tokens SET sealed = $3 WHERE id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Key) },
}
