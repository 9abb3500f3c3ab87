package approval

import (
	"time"

	"yardmaster/internal/db"
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

// mailRow is a mail that is due.
type mailRow struct {
	ActionID  string
	AccountID string
	Tries     int
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

	insertMail = db.S(`INSERT INTO approval_mails (action_id, account_id, due_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`)
	anyMail    = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM approval_mails WHERE due_at <= $1)`)
	// takeMails takes mails that are due, of every account, until the second time.
	takeMails = db.Q[mailRow](`UPDATE approval_mails SET due_at = $2, tries = tries + 1
		WHERE action_id IN (SELECT action_id FROM approval_mails WHERE due_at <= $1 ORDER BY due_at LIMIT $3) AND due_at <= $1
		RETURNING action_id, account_id, tries`)
	// doneMail is carried out by the node that has taken the mail, and by no other.
	doneMail   = db.S(`DELETE FROM approval_mails WHERE action_id = $1 AND tries = $2`)
	putOffMail = db.S(`UPDATE approval_mails SET due_at = $3 WHERE action_id = $1 AND tries = $2`)
	limitMails = db.S(`UPDATE approval_mails SET due_at = $1 WHERE due_at > $2`)
)

// ClockSetBack makes mails due that a clock which was set back would put off.
func ClockSetBack(tx *db.Tx) error {
	_, err := limitMails.Exec(tx, tx.Now, tx.Now.Add(longestWait))
	return err
}
