package notary

import "yardmaster/internal/db"

type head struct {
	AccountID string
	Seq       int64
	Hash      string
}

var (
	heads = db.Q[head](`SELECT account_id, seq, hash FROM audit_heads WHERE seq > 0 ORDER BY account_id`)
	// The rows of the platform belong to no account.
	hashOf     = db.Q[string](`SELECT hash FROM audit WHERE account_id = $1 AND seq = $2 AND seq > 0`)
	hashOfOurs = db.Q[string](`SELECT hash FROM audit WHERE account_id IS NULL AND seq = $1 AND seq > 0`)
	newestOf   = db.Q[int64](`SELECT COALESCE(MAX(seq), 0) AS seq FROM audit WHERE account_id = $1 AND seq > 0`)
	newestOurs = db.Q[int64](`SELECT COALESCE(MAX(seq), 0) AS seq FROM audit WHERE account_id IS NULL AND seq > 0`)
)

// mailedAt is the name under which the time of the last mail is kept. Of several
// servers one mails what is due; a time that has not come yet was not written
// by one of them.
const mailedAt = "audit-heads-mailed"

// hashAt is the hash of a row as it is now; empty if there is none.
func hashAt(tx *db.Tx, account string, seq int64) (hash string, err error) {
	if account == "" {
		hash, _, err = hashOfOurs.Maybe(tx, seq)
	} else {
		hash, _, err = hashOf.Maybe(tx, account, seq)
	}
	return hash, err
}

// newest is the number of the newest row there is.
func newest(tx *db.Tx, account string) (int64, error) {
	if account == "" {
		return newestOurs.One(tx)
	}
	return newestOf.One(tx, account)
}
