package notification

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

type row struct {
	ID, AccountID, UserID, Kind, Noun, Subject string
	Repo, Title, Text, Path                    string
	Count, Rev                                 int64
	Shown                                      bool
	CreatedAt, UpdatedAt                       time.Time
	ReadAt, ArchivedAt, SettledAt, MailedAt    *time.Time
}

// choice is a cell of the matrix of a person that they have set.
type choice struct {
	AccountID, UserID, Kind, Channel string
	Enabled                          bool
}

// personRow is what else belongs to a person in an account. QuietZone is empty without
// quiet hours.
type personRow struct {
	AccountID, UserID  string
	QuietFrom, QuietTo int64
	QuietZone          string
}

const columns = `id, account_id, user_id, kind, noun, subject, repo, title, text, path, count, rev, shown, created_at, updated_at,
	read_at, archived_at, settled_at, mailed_at`

type (
	unreadArgs    struct{ AccountID, UserID, Kind, Noun, Subject string }
	unsettledArgs struct{ AccountID, Kind, Noun, Subject string }
	readAllArgs   struct {
		AccountID, UserID string
		ReadAt            time.Time
		Rev               int64
	}
	sinceArgs struct {
		AccountID, UserID string
		Rev               int64
		Limit             int
	}
	countedArgs struct {
		AccountID, UserID, Kind string
		Now, Within             int64 // microseconds
	}
	markArgs struct {
		AccountID, UserID, ID string
		ReadAt, ArchivedAt    *time.Time
		Rev                   int64
	}
)

var (
	insert = db.SWith[row](`INSERT INTO notifications (` + columns + `)
		VALUES (:id, :account_id, :user_id, :kind, :noun, :subject, :repo, :title, :text, :path, :count, :rev, :shown, :created_at,
		:updated_at, :read_at, :archived_at, :settled_at, :mailed_at)`)
	again = db.SWith[row](`UPDATE notifications SET title = :title, text = :text, path = :path, repo = :repo, count = :count, rev = :rev,
		shown = :shown, updated_at = :updated_at WHERE id = :id`)
	unread = db.QWith[unreadArgs, row](`SELECT ` + columns + ` FROM notifications WHERE account_id = :account_id AND user_id = :user_id
		AND kind = :kind AND noun = :noun AND subject = :subject AND read_at IS NULL AND archived_at IS NULL AND settled_at IS NULL`)
	unsettled = db.QWith[unsettledArgs, row](`SELECT ` + columns + ` FROM notifications WHERE account_id = :account_id
		AND kind = :kind AND noun = :noun AND subject = :subject AND settled_at IS NULL ORDER BY user_id, id`)
	settle = db.S(`UPDATE notifications SET settled_at = $2, rev = $3 WHERE id = $1`)
	// counted counts a mail of a kind, and answers how many there were since the first of
	// them, which was less than :within before.
	counted = db.QWith[countedArgs, int64](`INSERT INTO notification_mails (account_id, user_id, kind, begun, mailed)
		VALUES (:account_id, :user_id, :kind, :now, 1) ON CONFLICT (account_id, user_id, kind) DO UPDATE SET
		mailed = CASE WHEN excluded.begun >= notification_mails.begun AND excluded.begun < notification_mails.begun + :within
			THEN notification_mails.mailed + 1 ELSE 1 END,
		begun = CASE WHEN excluded.begun >= notification_mails.begun AND excluded.begun < notification_mails.begun + :within
			THEN notification_mails.begun ELSE excluded.begun END
		RETURNING mailed`)
	setMailed = db.S(`UPDATE notifications SET mailed_at = $2 WHERE id = $1`)
	byID      = db.Q[row](`SELECT ` + columns + ` FROM notifications WHERE account_id = $1 AND user_id = $2 AND id = $3 AND shown`)
	mark      = db.SWith[markArgs](`UPDATE notifications SET read_at = :read_at, archived_at = :archived_at, rev = :rev
		WHERE account_id = :account_id AND user_id = :user_id AND id = :id`)
	readAll = db.SWith[readAllArgs](`UPDATE notifications SET read_at = :read_at, rev = :rev WHERE account_id = :account_id
		AND user_id = :user_id AND shown AND read_at IS NULL AND archived_at IS NULL`)
	counts = db.Q[countRow](`SELECT kind, COUNT(*) AS unread FROM notifications WHERE account_id = $1 AND user_id = $2 AND shown
		AND read_at IS NULL AND archived_at IS NULL AND settled_at IS NULL GROUP BY kind`)
	since = db.QWith[sinceArgs, row](`SELECT ` + columns + ` FROM notifications WHERE account_id = :account_id AND user_id = :user_id
		AND shown AND rev > :rev ORDER BY rev DESC LIMIT :limit`)
	newest = db.Q[row](`SELECT ` + columns + ` FROM notifications WHERE account_id = $1 AND user_id = $2 AND shown
		AND archived_at IS NULL ORDER BY rev DESC LIMIT $3`)
	forget = db.S(`DELETE FROM notifications WHERE updated_at < $1`)

	// bump locks the row until the transaction ends.
	bump = db.Q[int64](`INSERT INTO notification_people (account_id, user_id, rev) VALUES ($1, $2, 1)
		ON CONFLICT (account_id, user_id) DO UPDATE SET rev = notification_people.rev + 1 RETURNING rev`)
	revOf    = db.Q[int64](`SELECT rev FROM notification_people WHERE account_id = $1 AND user_id = $2`)
	personOf = db.Q[personRow](`SELECT account_id, user_id, quiet_from, quiet_to, quiet_zone FROM notification_people
		WHERE account_id = $1 AND user_id = $2`)
	setQuiet = db.SWith[personRow](`UPDATE notification_people SET quiet_from = :quiet_from, quiet_to = :quiet_to, quiet_zone = :quiet_zone
		WHERE account_id = :account_id AND user_id = :user_id`)
	choices = db.Q[choice](`SELECT account_id, user_id, kind, channel, enabled FROM notification_choices
		WHERE account_id = $1 AND user_id = $2`)
	choose = db.SWith[choice](`INSERT INTO notification_choices (account_id, user_id, kind, channel, enabled)
		VALUES (:account_id, :user_id, :kind, :channel, :enabled)
		ON CONFLICT (account_id, user_id, kind, channel) DO UPDATE SET enabled = excluded.enabled`)
)

// countRow is the number of unread rows of a kind.
type countRow struct {
	Kind   string
	Unread int64
}

// list reads a page of the inbox of a person in tx.Account.
func list(tx *db.Tx, userID string, p op.PageIn) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+` FROM notifications WHERE account_id = `, tx.Account).And("user_id = ", userID).SQL(" AND shown")
	if kind := p.Want("kind"); kind != "" {
		b.Is("kind", kind)
	}
	switch p.Want("state") {
	case "unread":
		b.SQL(" AND archived_at IS NULL AND read_at IS NULL")
	case "archived":
		b.SQL(" AND archived_at IS NOT NULL")
	case "":
		b.SQL(" AND archived_at IS NULL")
	}
	if more {
		b.And("(updated_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[row](tx, b.SQL(" ORDER BY updated_at DESC, id DESC LIMIT ", p.Size()))
}
