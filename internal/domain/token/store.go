package token

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

type row struct {
	ID         string
	Kind       policy.Credential
	Name       *string
	Prefix     string
	Hash       string
	Scopes     db.JSON[[]string]
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
	CreatedAt  time.Time
}

func (r row) token() Token {
	scopes, _ := policy.ParseScopes(r.Scopes.V)
	var advice *string
	lasts := r.ExpiresAt == nil || r.ExpiresAt.Sub(r.CreatedAt) > platformLife
	if lasts && scopes&policy.PlatformRead != 0 && r.RevokedAt == nil {
		advice = new(lasting)
	}
	return Token{
		ID:         r.ID,
		Name:       r.Name,
		Prefix:     r.Prefix,
		Scopes:     r.Scopes.V,
		ExpiresISO: r.ExpiresAt,
		Revoked:    r.RevokedAt != nil,
		CreatedAt:  r.CreatedAt,
		LastUsedAt: r.LastUsedAt,
		Advice:     advice,
	}
}

// Credential is the row of a token that a request has presented.
type Credential struct {
	ID        string
	AccountID string
	UserID    *string
	Kind      string
	Scopes    db.JSON[[]string]
	ExpiresAt *time.Time
	Vouched   bool
	Role      *string
	Admin     *bool      `db:"platform_admin"`
	Approved  *time.Time `db:"approved_at"`
}

// seen ends with the user who looks: an operator's tokens are shown to the operator alone,
// not to the account that they happen to be bound to.
const seen = `(kind <> 'operator' OR user_id =`

var (
	insert = db.SWith[insertArgs](`INSERT INTO tokens (id, account_id, user_id, kind, name, prefix, hash, scopes, expires_at, vouched, created_at)
		VALUES (:id, :account_id, :user_id, :kind, :name, :prefix, :hash, :scopes, :expires_at, :vouched, :created_at)`)
	byID = db.Q[row](`SELECT id, kind, name, prefix, hash, scopes, expires_at, revoked_at, last_used_at, created_at
		FROM tokens WHERE account_id = $1 AND id = $2 AND ` + seen + ` $3)`)
	byHash = db.Q[Credential](`SELECT t.id, t.account_id, t.user_id, t.kind, t.scopes, t.expires_at, t.vouched, m.role,
		u.platform_admin, u.approved_at
		FROM tokens t LEFT JOIN memberships m ON m.account_id = t.account_id AND m.user_id = t.user_id
		LEFT JOIN users u ON u.id = t.user_id
		WHERE t.hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2)`)
	// liveOf lists the tokens of a user, of whatever account, but for those of operators.
	liveOf = db.Q[liveRow](`SELECT id, account_id, hash FROM tokens
		WHERE user_id = $1 AND kind <> 'operator' AND revoked_at IS NULL ORDER BY id`)
	// vouchedIn lists the tokens that sessions of the identity provider of an account have minted.
	vouchedIn = db.Q[liveRow](`SELECT id, account_id, hash FROM tokens
		WHERE account_id = $1 AND vouched = TRUE AND revoked_at IS NULL ORDER BY id`)
	rename = db.S(`UPDATE tokens SET name = $3 WHERE account_id = $1 AND id = $2`)
	revoke = db.S(`UPDATE tokens SET revoked_at = $3 WHERE account_id = $1 AND id = $2 AND revoked_at IS NULL`)
	touch  = db.S(`UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`)
)

type liveRow struct{ ID, AccountID, Hash string }

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID string
	UserID        *string
	Kind          string
	Name          *string
	Prefix, Hash  string
	Scopes        db.JSON[[]string]
	ExpiresAt     *time.Time
	Vouched       bool
	CreatedAt     int64
}

// Resolve finds a token by its hash, unless it has expired or was revoked.
func Resolve(tx *db.Tx, hash string) (Credential, bool, error) {
	return byHash.Maybe(tx, hash, tx.Now)
}

// Touch records when a token was used.
func Touch(tx *db.Tx, id string, at time.Time) error {
	_, err := touch.Exec(tx, id, at)
	return err
}

func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	b := db.Build(`SELECT id, kind, name, prefix, hash, scopes, expires_at, revoked_at, last_used_at, created_at FROM tokens
		WHERE account_id = `, tx.Account)
	b.And(seen+" ", policy.From(tx.Context()).UserID).SQL(")")
	return db.NewestFirst[row](tx, b, p)
}
