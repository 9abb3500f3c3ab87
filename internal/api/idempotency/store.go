package idempotency

import "yardmaster/internal/db"

// row is the row of a key.
type row struct {
	Print       string `db:"print"`
	Claim       string `db:"claim"`
	Effect      bool   `db:"effect"`
	Status      int    `db:"status"`
	ContentType string `db:"content_type"`
	Body        []byte `db:"body"`
	CreatedAt   int64  `db:"created_at"`
}

var (
	find = db.Q[row](`SELECT print, claim, effect, status, content_type, body, created_at FROM idempotency_keys
		WHERE account_id = $1 AND key = $2`)

	claim = db.SWith[claimArgs](`INSERT INTO idempotency_keys (account_id, key, print, claim, effect, status, content_type,
		body, created_at)
		VALUES (:account_id, :key, :print, :claim, FALSE, 0, '', '', :created_at)
		ON CONFLICT (account_id, key) DO NOTHING`)
	// takeOver takes over a claim whose holder is gone and has changed nothing.
	takeOver = db.SWith[takeOverArgs](`UPDATE idempotency_keys SET claim = :mine, created_at = :created_at
		WHERE account_id = :account_id AND key = :key AND claim = :claim AND status = 0 AND effect = FALSE`)
	// disown deletes the claims of holders that are all gone.
	disown = db.S(`DELETE FROM idempotency_keys WHERE status = 0 AND effect = FALSE`)
	// leave deletes the claims of one server, whose claims begin alike.
	leave  = db.S(`DELETE FROM idempotency_keys WHERE status = 0 AND effect = FALSE AND claim >= $1 AND claim < $2`)
	expire = db.S(`DELETE FROM idempotency_keys WHERE account_id = $1 AND key = $2 AND created_at <= $3`)

	// mark runs in every transaction of a claim's request. It changes no row if the
	// claim was taken over.
	mark   = db.S(`UPDATE idempotency_keys SET effect = TRUE WHERE account_id = $1 AND key = $2 AND claim = $3`)
	settle = db.SWith[settleArgs](`UPDATE idempotency_keys SET status = :status, content_type = :content_type, body = :body
		WHERE account_id = :account_id AND key = :key AND claim = :claim`)
	release = db.S(`DELETE FROM idempotency_keys WHERE account_id = $1 AND key = $2 AND claim = $3 AND status = 0`)

	purge = db.S(`DELETE FROM idempotency_keys WHERE created_at <= $1`)
)

// settleArgs are the parameters of settle.
type settleArgs struct {
	AccountID, Key, Claim string
	Status                int
	ContentType           string
	Body                  []byte
}

// takeOverArgs are the parameters of takeOver.
type takeOverArgs struct {
	AccountID, Key, Claim, Mine string
	CreatedAt                   int64
}

// claimArgs are the parameters of claim.
type claimArgs struct {
	AccountID, Key, Print, Claim string
	CreatedAt                    int64
}

var pullIn = db.S(`UPDATE idempotency_keys SET created_at = $1 WHERE status = 0 AND created_at > $1`)

// ClockSetBack sets the time of claims from the future to now, so that they expire.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Now)
	return err
}
