package event

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/db"
)

// headRow is the newest row of a chain.
type headRow struct {
	AccountID string // empty: the platform's
	Seq       int64
	Hash      string
}

// chainRow is a row with its place in its chain.
type chainRow struct {
	ID        string
	AccountID *string
	Seq       int64
	At        time.Time
	Actor     string
	Kind      string
	Object    string
	RepoID    *string
	RequestID string
	Data      string
	PrevHash  string
	Hash      string
}

const chained = `id, account_id, seq, at, actor, kind, object, repo_id, request_id, data, prev_hash, hash`

type cursor struct {
	Seq   int64
	Tries int64
	DueAt *time.Time
}

var (
	insertReader    = db.S(`INSERT INTO event_readers (name, since) VALUES ($1, $2) ON CONFLICT DO NOTHING`)
	beginEverywhere = db.S(`INSERT INTO event_cursors (reader, account_id, seq)
		SELECT $1, account_id, seq FROM audit_heads WHERE account_id <> ''`)
	insertCursor = db.S(`INSERT INTO event_cursors (reader, account_id, seq) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`)
	selectCursor = db.Q[cursor](`SELECT seq, tries, due_at FROM event_cursors WHERE reader = $1 AND account_id = $2`)
	claimCursor  = db.Q[cursor](`SELECT seq, tries, due_at FROM event_cursors WHERE reader = $1 AND account_id = $2`).SkipLocked()
	moveCursor   = db.S(`UPDATE event_cursors SET seq = $3, tries = 0, due_at = NULL WHERE reader = $1 AND account_id = $2`)
	postpone     = db.S(`UPDATE event_cursors SET tries = tries + 1, due_at = $3 WHERE reader = $1 AND account_id = $2`)

	allHeads  = db.Q[headRow](`SELECT account_id, seq, hash FROM audit_heads ORDER BY account_id`)
	chain     = db.Q[chainRow](`SELECT ` + chained + ` FROM audit WHERE account_id = $1 AND seq > $2 + 0 AND seq > 0 ORDER BY seq LIMIT 500`)
	ourChain  = db.Q[chainRow](`SELECT ` + chained + ` FROM audit WHERE account_id IS NULL AND seq > $1 + 0 AND seq > 0 ORDER BY seq LIMIT 500`)
	selectSeq = db.Q[int64](`SELECT seq FROM audit_heads WHERE account_id = $1`)

	// selectBehind lists the accounts with events that a reader has not read and
	// that are not postponed.
	selectBehind = db.QWith[selectBehindArgs, string](`SELECT h.account_id FROM audit_heads h
		LEFT JOIN event_cursors c ON c.reader = :reader AND c.account_id = h.account_id
		WHERE h.account_id > :account_id AND h.seq > COALESCE(c.seq, 0) AND (c.due_at IS NULL OR c.due_at <= :due_at)
		ORDER BY h.account_id LIMIT :limit`)
)

// selectBehindArgs are the parameters of selectBehind.
type selectBehindArgs struct {
	Reader, AccountID string
	DueAt             time.Time
	Limit             int
}

// headOf returns the position of an account's newest event, 0 if it has none.
func headOf(tx *db.Tx, account string) (int64, error) {
	n, _, err := selectSeq.Maybe(tx, account)
	return n, err
}

type stored struct {
	Recorded
	Text string
}

// recorded returns the events of an account of some kinds, after the position after
// and up to to, in order.
func recorded(tx *db.Tx, account string, after, to int64, kinds []string, limit int64) ([]Recorded, error) {
	// The condition of the index stands before the bounds: SQLite would look at their values
	// to find out whether they imply it, and compile the query anew each time.
	b := db.Build(`SELECT id, account_id, seq, at, actor, kind, object, repo_id, request_id, data AS text
		FROM audit WHERE account_id = `, account).
		SQL(" AND seq > 0 AND seq > ", after).SQL(" AND seq <= ", to).In("kind", kinds).SQL(" ORDER BY seq LIMIT ", limit)
	rows, err := db.Select[stored](tx, b)
	out := make([]Recorded, len(rows))
	for i, r := range rows {
		out[i] = r.Recorded
		out[i].Data = jsontext.Value(r.Text)
	}
	return out, err
}

type (
	oldRow struct {
		Seq  int64
		At   time.Time
		Hash string
	}
	reapRow struct {
		Seq int64
		Cut
	}
	cutArgs struct {
		AccountID string
		Cut
	}
)

var (
	selectCut = db.Q[Cut](`SELECT cut_seq, cut_hash, cut_told FROM audit_heads WHERE account_id = $1`)
	// cutDue lists the chains whose oldest row is from before a time. The platform's rows have
	// no account.
	cutDue = db.Q[string](`SELECT h.account_id FROM audit_heads h JOIN audit a ON a.account_id = h.account_id
		AND a.seq = h.cut_seq + 1 AND a.seq > 0 WHERE h.seq > h.cut_seq AND a.at < $1 ORDER BY h.account_id LIMIT 1000`)
	ourCutDue = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM audit_heads h JOIN audit a ON a.account_id IS NULL
		AND a.seq = h.cut_seq + 1 AND a.seq > 0 WHERE h.account_id = '' AND h.seq > h.cut_seq AND a.at < $1)`)
	lockCut    = db.Q[reapRow](`SELECT seq, cut_seq, cut_hash, cut_told FROM audit_heads WHERE account_id = $1`).ForUpdate()
	oldest     = db.Q[oldRow](`SELECT seq, at, hash FROM audit WHERE account_id = $1 AND seq > $2 + 0 AND seq > 0 ORDER BY seq LIMIT 2000`)
	ourOldest  = db.Q[oldRow](`SELECT seq, at, hash FROM audit WHERE account_id IS NULL AND seq > $1 + 0 AND seq > 0 ORDER BY seq LIMIT 2000`)
	removeOld  = db.S(`DELETE FROM audit WHERE account_id = $1 AND seq > 0 AND seq <= $2 + 0`)
	removeOurs = db.S(`DELETE FROM audit WHERE account_id IS NULL AND seq > 0 AND seq <= $1 + 0`)
	cutHead    = db.SWith[cutArgs](`UPDATE audit_heads SET cut_seq = :cut_seq, cut_hash = :cut_hash, cut_told = :cut_told
		WHERE account_id = :account_id`)
	removeAll = db.S(`DELETE FROM audit WHERE account_id = $1`)
	readHead  = db.Q[head](`SELECT seq, hash FROM audit_heads WHERE account_id = $1`)
	countOld  = db.Q[int64](`SELECT COUNT(*) AS n FROM audit WHERE at < $1 AND seq > 0`)

	tellingRow = db.Q[chainRow](`SELECT ` + chained + ` FROM audit WHERE account_id = $1 AND seq = $2 AND seq > 0`)
	ourTelling = db.Q[chainRow](`SELECT ` + chained + ` FROM audit WHERE account_id IS NULL AND seq = $1 AND seq > 0`)
)
