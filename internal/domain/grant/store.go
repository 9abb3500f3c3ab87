package grant

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

// Every statement about one grant tells whether it is active at a given time.
const selection = `SELECT id, account_id, user_id, ai_devs, reason, (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)) AS active,
	issued_by, created_at, expires_at, revoked_at FROM grants WHERE `

var (
	byID   = db.Q[EntitlementGrant](selection + `id = $2`)
	live   = db.Q[EntitlementGrant](selection + `user_id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) ORDER BY created_at DESC, id DESC`)
	insert = db.S(`INSERT INTO grants (id, account_id, user_id, ai_devs, reason, issued_by, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`)
	park   = db.S(`UPDATE grants SET revoked_at = $2, revoked_by = $3 WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`)

	userByEmail = db.Q[string](`SELECT id FROM users WHERE email = $1`)
	waiting     = db.Q[string](`SELECT id FROM invitations WHERE kind = 'platform' AND email = $1 AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > $2`)

	devs = db.Q[given](`SELECT g.ai_devs, g.expires_at FROM grants g
		WHERE g.revoked_at IS NULL AND (g.account_id = $1 OR g.user_id IN (
			SELECT m.user_id FROM memberships m WHERE m.account_id = $1 AND m.role = 'owner' AND NOT EXISTS (
				SELECT 1 FROM memberships o WHERE o.user_id = m.user_id AND o.role = 'owner'
				AND (o.created_at, o.account_id) < (m.created_at, m.account_id))))`).Kept()
)

// given is what one grant gives, until it ends.
type given struct {
	AIDevs    int64 `db:"ai_devs"`
	ExpiresAt *time.Time
}

func list(tx *db.Tx, s Subject, p op.PageIn) ([]EntitlementGrant, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(selectionBy, tx.Micros()).SQL(") AS active FROM grants WHERE ")
	if s.AccountID != "" {
		b.SQL("account_id = ", s.AccountID)
	} else {
		b.SQL("user_id = ", s.UserID)
	}
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[EntitlementGrant](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}

// selectionBy is selection for a built query, which counts its parameters
// itself.
const selectionBy = `SELECT id, account_id, user_id, ai_devs, reason, issued_by, created_at, expires_at, revoked_at,
	(revoked_at IS NULL AND COALESCE(expires_at, 9223372036854775807) > `

// Devs is how many AI developers an account has for free.
func Devs(tx *db.Tx, accountID string) (n int64, err error) {
	all, err := devs.All(tx, accountID)
	for _, g := range all {
		if g.ExpiresAt == nil || g.ExpiresAt.After(tx.Now) {
			n += g.AIDevs
		}
	}
	return n, err
}

// History is the newest of what a person was given, up to limit.
func History(tx *db.Tx, userID string, limit int) (op.Bounded[EntitlementGrant], error) {
	p := op.PageIn{Limit: limit}
	rows, err := list(tx, Subject{UserID: userID}, p)
	return op.NewBounded(p, rows), err
}

func key(g EntitlementGrant) []string { return op.TimeKey(g.CreatedAt, g.ID) }

// Book makes a grant that the caller records as part of a larger change.
func Book(tx *db.Tx, s Subject, g EntitlementGrant) (EntitlementGrant, error) {
	g.ID, g.AccountID, g.UserID, g.Active, g.CreatedAt = id.New(), optional(s.AccountID), optional(s.UserID), true, tx.Now
	g.IssuedBy = policy.From(tx.Context()).Label()
	_, err := insert.Exec(tx, g.ID, g.AccountID, g.UserID, g.AIDevs, g.Reason, g.IssuedBy, tx.Micros(), g.ExpiresAt)
	return g, err
}

// issue makes a grant and records it in the account it is for.
func issue(tx *db.Tx, s Subject, g EntitlementGrant) (EntitlementGrant, error) {
	g, err := Book(tx, s, g)
	if err != nil {
		return g, err
	}
	return g, event.Record(tx, event.Change{Kind: "grant.issued", Object: g.ID, Account: s.AccountID,
		Data: map[string]any{"user_id": g.UserID, "ai_devs": g.AIDevs, "reason": g.Reason, "expires_at": g.ExpiresAt}})
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
