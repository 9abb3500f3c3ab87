package invitation

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// columns are those of a row.
const columns = `id, kind, account_id, email, login, user_id, role, bundle, invited_by, created_at, expires_at, accepted_at, revoked_at`

type row struct {
	ID         string
	Kind       Kind
	AccountID  *string
	Email      string  // empty: it is for a login
	Login      string  // empty: it is for an address
	UserID     *string // who has the login; nil: nobody has, or it is for an address
	Role       *policy.Role
	Bundle     db.JSON[Bundle]
	InvitedBy  *string
	CreatedAt  time.Time
	ExpiresAt  time.Time
	AcceptedAt *time.Time
	RevokedAt  *time.Time
}

// put stores an invitation, in the place of an open one of the same recipient.
const put = `INSERT INTO invitations (id, kind, account_id, email, login, user_id, role, bundle, token_hash, invited_by,
		created_at, expires_at)
	VALUES (:id, :kind, :account_id, :email, :login, :user_id, :role, :bundle, :token_hash, :invited_by, :created_at, :expires_at)
	ON CONFLICT (COALESCE(account_id, ''), email, login) WHERE accepted_at IS NULL AND revoked_at IS NULL
	DO UPDATE SET user_id = excluded.user_id, role = excluded.role, bundle = excluded.bundle, token_hash = excluded.token_hash,
		invited_by = excluded.invited_by, expires_at = excluded.expires_at`

var (
	arm     = db.QWith[armArgs, row](put + ` RETURNING ` + columns)
	armOnce = db.QWith[armArgs, row](put + ` WHERE invitations.expires_at <= :created_at RETURNING ` + columns)
	waits   = db.Q[string](`SELECT id FROM invitations
		WHERE kind = $1 AND account_id IS NULL AND email = $2 AND accepted_at IS NULL AND revoked_at IS NULL`)
	empty = db.S(`UPDATE invitations SET bundle = '{}'
		WHERE kind = 'platform' AND email = $1 AND accepted_at IS NULL AND revoked_at IS NULL`)
	rearm = db.Q[row](`UPDATE invitations SET token_hash = $2, expires_at = $3 WHERE id = $1
		RETURNING ` + columns)
	memberByID = db.Q[row](`SELECT ` + columns + `
		FROM invitations WHERE account_id = $1 AND id = $2`).ForUpdate()
	platformByID = db.Q[row](`SELECT ` + columns + `
		FROM invitations WHERE kind = 'platform' AND id = $1`).ForUpdate()
	byHash = db.Q[row](`SELECT ` + columns + `
		FROM invitations WHERE token_hash = $1`).ForUpdate()
	seen = db.Q[row](`SELECT ` + columns + `
		FROM invitations WHERE token_hash = $1`)
	// openOf lists what a user may accept without a link.
	openOf = db.Q[row](`SELECT ` + columns + ` FROM invitations
		WHERE user_id = $1 AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > $2 ORDER BY created_at DESC, id DESC`)
	// openTo lists what invites a user to an account, by login or by address.
	openTo = db.QWith[openToArgs, string](`SELECT id FROM invitations WHERE account_id = :account_id
		AND (user_id = :user_id OR email = :email AND email <> '') AND accepted_at IS NULL AND revoked_at IS NULL ORDER BY id`)
	// sentBy lists the open invitations to accounts that a user has sent.
	sentBy = db.Q[sentRow](`SELECT id, account_id, role FROM invitations
		WHERE invited_by = $1 AND account_id IS NOT NULL AND accepted_at IS NULL AND revoked_at IS NULL ORDER BY id`)
	byIDOf  = db.Q[row](`SELECT ` + columns + ` FROM invitations WHERE id = $1 AND user_id = $2`).ForUpdate()
	accept  = db.S(`UPDATE invitations SET accepted_at = $2, accepted_by = $3 WHERE id = $1`)
	revoke  = db.S(`UPDATE invitations SET revoked_at = $2 WHERE id = $1`)
	openFor = db.Q[int64](`SELECT COUNT(*) FROM invitations
		WHERE email = $1 AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > $2`)
)

func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	b := db.Build(`SELECT `+columns+`
		FROM invitations WHERE kind = `, Platform)
	switch p.Want("status") {
	case Pending:
		b.And("accepted_at IS NULL AND revoked_at IS NULL AND expires_at > ", tx.Micros())
	case Expired:
		b.And("accepted_at IS NULL AND revoked_at IS NULL AND expires_at <= ", tx.Micros())
	case Accepted:
		b.And("accepted_at IS NOT NULL")
	case Revoked:
		b.And("revoked_at IS NOT NULL")
	}
	if p.Q != "" {
		b.Contains("email", p.Q)
	}
	return db.NewestFirst[row](tx, b, p)
}

// listMembers reads a page of the invitations to tx.Account.
func listMembers(tx *db.Tx, p op.PageIn) ([]row, error) {
	b := db.Build(`SELECT `+columns+`
		FROM invitations WHERE account_id = `, tx.Account)
	return db.NewestFirst[row](tx, b, p)
}

type sentRow struct {
	ID, AccountID string
	Role          policy.Role
}

type openToArgs struct{ AccountID, UserID, Email string }

// armArgs are the parameters of arm and armOnce.
type armArgs struct {
	ID        string
	Kind      Kind
	AccountID *string
	Email     string
	Login     string
	UserID    *string
	Role      *policy.Role
	Bundle    db.JSON[Bundle]
	TokenHash string
	InvitedBy *string
	CreatedAt time.Time
	ExpiresAt time.Time
}
