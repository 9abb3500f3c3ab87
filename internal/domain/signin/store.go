package signin

import (
	"time"

	"yardmaster/internal/db"
)

type sessionRow struct {
	UserID        string
	AccountID     string
	SignedInAt    time.Time
	ExpiresAt     time.Time
	PlatformAdmin bool
	ApprovedAt    *time.Time
}

type loginRow struct {
	ID           string
	PasswordHash string
	AccountID    string
}

var (
	sessionByHash = db.Q[sessionRow](`SELECT s.user_id, s.account_id, s.signed_in_at, s.expires_at, u.platform_admin, u.approved_at
		FROM signins s JOIN users u ON u.id = s.user_id
		WHERE s.hash = $1 AND s.expires_at > $2 AND s.last_seen_at > $3`)
	roleOf        = db.Q[string](`SELECT role FROM memberships WHERE account_id = $1 AND user_id = $2`)
	insertSession = db.S(`INSERT INTO signins (hash, user_id, account_id, signed_in_at, last_seen_at, expires_at) VALUES ($1, $2, $3, $4, $4, $5)`)
	refresh       = db.S(`UPDATE signins SET signed_in_at = $3 WHERE user_id = $1 AND hash LIKE $2`)
	passwordOf    = db.Q[string](`SELECT password_hash FROM users WHERE id = $1`)
	touchSession  = db.S(`UPDATE signins SET last_seen_at = $2 WHERE hash = $1`)
	dropSession   = db.Q[string](`DELETE FROM signins WHERE user_id = $1 AND hash LIKE $2 RETURNING hash`)
	userByLogin   = db.Q[loginRow](`SELECT u.id, u.password_hash,
			COALESCE((SELECT m.account_id FROM memberships m WHERE m.user_id = u.id ORDER BY m.created_at LIMIT 1), '') AS account_id
		FROM users u WHERE u.login = $1 OR u.email = $1`)
)
