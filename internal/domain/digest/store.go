package digest

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

type row struct {
	ID        string
	AccountID string
	Kind      string
	Period    string
	Zone      string
	FromAt    time.Time
	ToAt      time.Time
	Headline  string
	Quiet     bool
	Content   db.JSON[Content]
	CreatedAt time.Time
}

type headRow struct {
	ID, Kind, Period, Zone string
	FromAt, ToAt           time.Time
	Headline               string
	Quiet                  bool
	CreatedAt              time.Time
}

const (
	headColumns = `id, kind, period, zone, from_at, to_at, headline, quiet, created_at`
	columns     = `id, account_id, kind, period, zone, from_at, to_at, headline, quiet, content, created_at`
)

var (
	insert = db.SWith[row](`INSERT INTO digests (` + columns + `)
		VALUES (:id, :account_id, :kind, :period, :zone, :from_at, :to_at, :headline, :quiet, :content, :created_at)
		ON CONFLICT (account_id, kind, period) DO NOTHING`)
	byID = db.Q[row](`SELECT ` + columns + ` FROM digests WHERE account_id = $1 AND id = $2`)
	// newest finds the last digest of a kind.
	newest = db.Q[struct {
		Period string
		ToAt   time.Time
	}](`SELECT period, to_at FROM digests WHERE account_id = $1 AND kind = $2 ORDER BY period DESC LIMIT 1`)
	list   = db.Q[headRow](`SELECT ` + headColumns + ` FROM digests WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`)
	forget = db.S(`DELETE FROM digests WHERE account_id = $1 AND created_at < $2`)

	homeOf   = db.Q[home](`SELECT zone, created_at FROM accounts WHERE id = $1`)
	openKeys = db.Q[due.Open](`SELECT a.id || '/' || k.kind AS key, a.id AS account FROM accounts a
		CROSS JOIN (SELECT 'daily' AS kind UNION ALL SELECT 'weekly' AS kind) k LIMIT $1`)
)

// find reads a digest of tx.Account. It returns fault.NotFound in the same words for an id
// that is unknown, foreign or malformed.
func find(tx *db.Tx, digestID string) (row, error) {
	if !id.Valid(digestID) {
		return row{}, fault.Missing("digest")
	}
	r, ok, err := byID.Maybe(tx, tx.Account, digestID)
	if err == nil && !ok {
		err = fault.Missing("digest")
	}
	return r, err
}

// heads reads the newest digests of tx.Account.
func heads(tx *db.Tx, p op.PageIn) ([]headRow, error) { return list.All(tx, tx.Account, p.Size()) }
