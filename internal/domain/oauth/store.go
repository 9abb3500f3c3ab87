package oauth

import (
	"cmp"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
)

type codeRow struct {
	AccountID string
	UserID    string
	Client    string
	Name      string
	Redirect  string
	Challenge string
	Scopes    db.JSON[[]string]
	ExpiresAt time.Time
	Vouched   bool
	TokenID   *string
}

type deviceRow struct {
	Hash      string
	UserCode  string
	Name      string
	Asked     db.JSON[[]string]
	ExpiresAt time.Time
	PolledAt  *time.Time
	Decision  string
	AccountID *string
	UserID    *string
	Scopes    *db.JSON[[]string]
	Vouched   bool
	TokenID   *string
}

type unfetchedRow struct{ AccountID, Hash string }

type namesRow struct{ Login, Account string }

// Codes and devices are found by a secret that only its holder knows, in whatever
// account; the row names the account.
var (
	insertCode = db.SWith[insertCodeArgs](`INSERT INTO oauth_codes (hash, ticket, account_id, user_id, client, name, redirect,
		challenge, scopes, vouched, expires_at)
		VALUES (:hash, :ticket, :account_id, :user_id, :client, :name, :redirect, :challenge, :scopes, :vouched, :expires_at)`)
	codeByHash = db.Q[codeRow](`SELECT account_id, user_id, client, name, redirect, challenge, scopes, expires_at, vouched,
		token_id
		FROM oauth_codes WHERE hash = $1`)
	spendCode  = db.S(`UPDATE oauth_codes SET token_id = $3 WHERE account_id = $1 AND hash = $2`)
	purgeCodes = db.S(`DELETE FROM oauth_codes WHERE expires_at < $1`)

	insertDevice = db.SWith[insertDeviceArgs](`INSERT INTO oauth_devices (hash, user_code, name, asked, expires_at, decision)
		VALUES (:hash, :user_code, :name, :asked, :expires_at, 'pending')`)
	deviceByHash = db.Q[deviceRow](`SELECT hash, user_code, name, asked, expires_at, polled_at, decision, account_id, user_id, scopes,
		vouched, token_id
		FROM oauth_devices WHERE hash = $1`)
	deviceByCode = db.Q[deviceRow](`SELECT hash, user_code, name, asked, expires_at, polled_at, decision, account_id, user_id, scopes,
		vouched, token_id
		FROM oauth_devices WHERE user_code = $1`)
	decideDevice = db.SWith[decideDeviceArgs](`UPDATE oauth_devices SET decision = :decision, account_id = :account_id, user_id = :user_id,
		scopes = :scopes, vouched = :vouched
		WHERE hash = :hash AND decision = 'pending' AND expires_at > :expires_at`)
	pollDevice   = db.S(`UPDATE oauth_devices SET polled_at = $2 WHERE hash = $1`)
	spendDevice  = db.S(`UPDATE oauth_devices SET token_id = $3 WHERE account_id = $1 AND hash = $2`)
	purgeDevices = db.S(`DELETE FROM oauth_devices WHERE expires_at < $2 AND (token_id IS NULL OR expires_at < $1)`)

	// unfetched lists what a user has allowed programs and none has fetched.
	unfetched = db.Q[unfetchedRow](`SELECT account_id, hash FROM oauth_codes WHERE user_id = $1 AND token_id IS NULL
		UNION ALL SELECT account_id, hash FROM oauth_devices WHERE user_id = $1 AND token_id IS NULL ORDER BY hash`)
	dropCode   = db.S(`DELETE FROM oauth_codes WHERE account_id = $1 AND hash = $2 AND token_id IS NULL`)
	denyDevice = db.S(`UPDATE oauth_devices SET decision = 'denied' WHERE account_id = $1 AND hash = $2 AND token_id IS NULL`)
)

// decideDeviceArgs are the parameters of decideDevice.
type decideDeviceArgs struct {
	Hash, Decision, AccountID, UserID string
	Scopes                            db.JSON[[]string]
	Vouched                           bool
	ExpiresAt                         int64
}

// insertDeviceArgs are the parameters of insertDevice.
type insertDeviceArgs struct {
	Hash, UserCode, Name string
	Asked                db.JSON[[]string]
	ExpiresAt            int64
}

// insertCodeArgs are the parameters of insertCode.
type insertCodeArgs struct {
	Hash, Ticket, AccountID, UserID, Client, Name, Redirect, Challenge string
	Scopes                                                             db.JSON[[]string]
	Vouched                                                            bool
	ExpiresAt                                                          int64
}

// namesOf returns the logins of a user and of an account of which the user is a
// member. It returns db.ErrNoRows if they are no member.
func namesOf(tx *db.Tx, accountID, userID string) (n namesRow, err error) {
	_, member, err := people.Role(tx, accountID, userID)
	if err != nil || !member {
		return n, cmp.Or(err, db.ErrNoRows)
	}
	n.Login, n.Account, _, err = people.Names(tx, userID, accountID)
	return n, err
}
