package notary

import "yardmaster/internal/db"

type head struct {
	AccountID string
	Seq       int64
	Hash      string
}

var (
	heads = db.Q[head](`SELECT account_id, seq, hash FROM audit_heads WHERE seq > 0 ORDER BY account_id`)
	// The platform's own rows have no account.
	hashOf     = db.Q[string](`SELECT hash FROM audit WHERE account_id = $1 AND seq = $2 AND seq > 0`)
	hashOfOurs = db.Q[string](`SELECT hash FROM audit WHERE account_id IS NULL AND seq = $1 AND seq > 0`)
	newestOf   = db.Q[int64](`SELECT COALESCE(MAX(seq), 0) AS seq FROM audit WHERE account_id = $1 AND seq > 0`)
	newestOurs = db.Q[int64](`SELECT COALESCE(MAX(seq), 0) AS seq FROM audit WHERE account_id IS NULL AND seq > 0`)
)

// mailedAt is the name of the time of the last mail. Of several servers the one
// that sets it mails the notes; a time in the future was not written by a server.
const mailedAt = "audit-heads-mailed"

// hashAt returns the present hash of a row; "" if there is no such row.
func hashAt(tx *db.Tx, account string, seq int64) (hash string, err error) {
	if account == "" {
		hash, _, err = hashOfOurs.Maybe(tx, seq)
	} else {
		hash, _, err = hashOf.Maybe(tx, account, seq)
	}
	return hash, err
}

// newest returns the number of the newest row.
func newest(tx *db.Tx, account string) (int64, error) {
	if account == "" {
		return newestOurs.One(tx)
	}
	return newestOf.One(tx, account)
}
