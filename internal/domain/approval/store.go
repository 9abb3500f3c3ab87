package approval

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

// linkRow is a link.
type linkRow struct {
	ID         string
	AccountID  string
	ActionID   string
	UserID     string
	Verb       string
	HeadSHA    string `db:"head_sha"`
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RedeemedAt *time.Time
}

var (
	insertLink = db.SWith[linkRow](`INSERT INTO action_links (id, account_id, action_id, user_id, verb, head_sha, created_at, expires_at)
		VALUES (:id, :account_id, :action_id, :user_id, :verb, :head_sha, :created_at, :expires_at)`)
	linkByID = db.Q[linkRow](`SELECT id, account_id, action_id, user_id, verb, head_sha, created_at, expires_at, redeemed_at
		FROM action_links WHERE account_id = $1 AND id = $2`)
	lockLink   = db.Q[string](`SELECT id FROM action_links WHERE account_id = $1 AND id = $2`).ForUpdate()
	redeemLink = db.S(`UPDATE action_links SET redeemed_at = $2 WHERE id = $1 AND redeemed_at IS NULL`)
	// forgetLinks removes links that have long answered that they are expired.
	forgetLinks = db.S(`DELETE FROM action_links WHERE expires_at < $1`)

	insertMail = db.S(`INSERT INTO approval_mails (action_id, account_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`)
	mailByID   = db.Q[string](`SELECT action_id FROM approval_mails WHERE action_id = $1`)
	openMails  = db.Q[due.Open](`SELECT action_id AS key, account_id AS account FROM approval_mails LIMIT $1`)
	doneMail   = db.S(`DELETE FROM approval_mails WHERE action_id = $1`)
)
