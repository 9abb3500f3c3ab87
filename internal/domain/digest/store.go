package digest

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
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
	forget = db.S(`DELETE FROM digests WHERE created_at < $1`)

	// unplanned finds accounts of which no digest is due, or at the hour of another zone.
	unplanned = db.Q[placeRow](`SELECT a.id, a.zone FROM accounts a WHERE NOT EXISTS (SELECT 1 FROM digest_dues d
		WHERE d.account_id = a.id AND d.kind = 'weekly' AND d.zone = a.zone) ORDER BY a.id LIMIT $1`)
	plan = db.SWith[dueRow](`INSERT INTO digest_dues (account_id, kind, zone, due_at) VALUES (:account_id, :kind, :zone, :due_at)
		ON CONFLICT (account_id, kind) DO UPDATE SET zone = excluded.zone, due_at = excluded.due_at`)
	// due finds the digests that are due, behind a place in their order.
	due = db.QWith[dueArgs, dueRow](`SELECT account_id, kind, zone, due_at FROM digest_dues
		WHERE due_at <= :now AND (due_at, account_id, kind) > (:due_at, :account_id, :kind) ORDER BY due_at, account_id, kind LIMIT :most`)
	// move fails to change a row that another node has moved.
	move = db.SWith[moveArgs](`UPDATE digest_dues SET due_at = :to
		WHERE account_id = :account_id AND kind = :kind AND zone = :zone AND due_at = :due_at`)
	unplan = db.S(`UPDATE digest_dues SET zone = '' WHERE due_at > $1`)
)

type placeRow struct{ ID, Zone string }

// dueRow is a digest that is to be made at an instant, in microseconds.
type dueRow struct {
	AccountID, Kind, Zone string
	DueAt                 int64
}

// dueArgs are the parameters of due.
type dueArgs struct {
	dueRow
	Now  int64
	Most int
}

// moveArgs are the parameters of move.
type moveArgs struct {
	dueRow
	To int64
}

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

// ClockSetBack has the next digest of each account found anew. One that was made is not
// made again: there is one of its period.
func ClockSetBack(tx *db.Tx) error {
	_, err := unplan.Exec(tx, tx.Now)
	return err
}
