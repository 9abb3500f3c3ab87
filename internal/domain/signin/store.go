package signin

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/token"
)

type linkRow struct{ UserID, AccountID, ReturnTo string }

type insertLinkArgs struct {
	Hash, UserID, AccountID, ReturnTo string
	ExpiresAt                         int64
}

type sessionRow struct {
	UserID        string
	AccountID     string
	SignedInAt    time.Time
	ExpiresAt     time.Time
	PlatformAdmin bool
	ApprovedAt    *time.Time
	SSOAccountID  *string `db:"sso_account_id"`
}

var (
	sessionByHash = db.Q[sessionRow](`SELECT s.user_id, s.account_id, s.signed_in_at, s.expires_at, u.platform_admin, u.approved_at,
		s.sso_account_id
		FROM signins s JOIN users u ON u.id = s.user_id
		WHERE s.hash = $1 AND s.expires_at > $2 AND s.last_seen_at > $3`)
	insertSession = db.SWith[insertSessionArgs](`INSERT INTO signins (hash, user_id, account_id, signed_in_at, last_seen_at, expires_at,
		sso_account_id)
		VALUES (:hash, :user_id, :account_id, :signed_in_at, :signed_in_at, :expires_at, :sso_account_id)`)
	// The beginning of a hash is an expression, so that SQLite does not look at it (dbtest.Declared).
	refresh      = db.S(`UPDATE signins SET signed_in_at = $3 WHERE user_id = $1 AND hash LIKE $2 || ''`)
	repoint      = db.Q[string](`UPDATE signins SET account_id = $3 WHERE user_id = $1 AND hash LIKE $2 || '' RETURNING hash`)
	moveSessions = db.S(`UPDATE signins SET account_id = $3 WHERE account_id = $1 AND user_id = $2`)
	// dropDead deletes the sessions of a user that are none any more.
	dropDead     = db.S(`DELETE FROM signins WHERE user_id = $1 AND (expires_at <= $2 OR last_seen_at <= $3)`)
	dropSessions = db.S(`DELETE FROM signins WHERE account_id = $1 AND user_id = $2`)
	// dropVouched deletes the sessions that an account's own provider has vouched
	// for, of the members of the account.
	dropVouched = db.Q[string](`DELETE FROM signins
		WHERE sso_account_id = $1 AND user_id IN (SELECT user_id FROM memberships WHERE account_id = $1) RETURNING hash`)
	touchSession = db.S(`UPDATE signins SET last_seen_at = $2 WHERE hash = $1 AND last_seen_at < $2`)
	dropSession  = db.Q[string](`DELETE FROM signins WHERE user_id = $1 AND hash LIKE $2 || '' RETURNING hash`)

	// A new code replaces the one before it. An address gets a limited number of
	// codes in a window.
	armCode = db.SWith[armCodeArgs](`INSERT INTO signin_codes (email, code, tries, expires_at, sent, window_at)
		VALUES (:email, :code, 0, :expires_at, 1, :now)
		ON CONFLICT (email) DO UPDATE SET code = excluded.code, tries = 0, expires_at = excluded.expires_at,
		sent = CASE WHEN signin_codes.window_at <= :window_at THEN 1 ELSE signin_codes.sent + 1 END,
		window_at = CASE WHEN signin_codes.window_at <= :window_at THEN excluded.window_at ELSE signin_codes.window_at END
		WHERE signin_codes.window_at <= :window_at OR signin_codes.sent < :sent`)
	tryCode = db.Q[string](`UPDATE signin_codes SET tries = tries + 1
		WHERE email = $1 AND expires_at > $2 AND tries < $3 RETURNING code`)
	spendCode  = db.S(`UPDATE signin_codes SET expires_at = 0 WHERE email = $1 AND code = $2 AND expires_at > 0`)
	purgeCodes = db.S(`DELETE FROM signin_codes WHERE window_at < $1`)

	insertLink = db.SWith[insertLinkArgs](`INSERT INTO signin_links (hash, user_id, account_id, return_to, expires_at)
		VALUES (:hash, :user_id, :account_id, :return_to, :expires_at)`)
	findLink   = db.Q[linkRow](`SELECT user_id, account_id, return_to FROM signin_links WHERE hash = $1 AND expires_at > $2`)
	takeLink   = db.Q[linkRow](`DELETE FROM signin_links WHERE hash = $1 AND expires_at > $2 RETURNING user_id, account_id, return_to`)
	purgeLinks = db.S(`DELETE FROM signin_links WHERE expires_at <= $1`)

	insertReset = db.S(`INSERT INTO password_links (hash, user_id, expires_at) VALUES ($1, $2, $3)`)
	findReset   = db.Q[string](`SELECT user_id FROM password_links WHERE hash = $1 AND expires_at > $2`)
	takeReset   = db.Q[string](`DELETE FROM password_links WHERE hash = $1 AND expires_at > $2 RETURNING user_id`)
	liveResets  = db.Q[int64](`SELECT COUNT(*) FROM password_links WHERE user_id = $1 AND expires_at > $2`)
	dropResets  = db.S(`DELETE FROM password_links WHERE user_id = $1`)
	purgeResets = db.S(`DELETE FROM password_links WHERE expires_at <= $1`)

	// A try is counted unless it comes too early. After a while without wrong tries
	// the count begins anew.
	countGuess = db.Q[int64](`INSERT INTO signin_guesses (who, failures, next_at, last_at) VALUES ($1, 1, 0, $2)
		ON CONFLICT (who) DO UPDATE SET failures = CASE WHEN signin_guesses.last_at <= $3 THEN 1 ELSE signin_guesses.failures + 1 END,
			last_at = excluded.last_at, next_at = 0
		WHERE signin_guesses.next_at <= $2 RETURNING failures`)
	delayGuess   = db.S(`UPDATE signin_guesses SET next_at = $2 WHERE who = $1`)
	nextGuess    = db.Q[time.Time](`SELECT next_at FROM signin_guesses WHERE who = $1`)
	tellGuess    = db.S(`UPDATE signin_guesses SET told_at = $2 WHERE who = $1 AND told_at <= $3`)
	clearGuesses = db.S(`UPDATE signin_guesses SET failures = 0, next_at = 0 WHERE who = $1`)
	uncountGuess = db.S(`UPDATE signin_guesses SET failures = failures - 1, next_at = 0 WHERE who = $1 AND failures > 0`)
	isHome       = db.Q[string](`SELECT who FROM signin_guesses WHERE who = $1 AND good_at > $2`)
	noteHome     = db.S(`INSERT INTO signin_guesses (who, failures, next_at, last_at, good_at) VALUES ($1, 0, 0, $2, $2)
		ON CONFLICT (who) DO UPDATE SET good_at = excluded.good_at, last_at = excluded.last_at`)
	purgeGuesses = db.S(`DELETE FROM signin_guesses WHERE last_at < $1 AND good_at < $2`)

	// dropOthers deletes the sessions of a user but the one of a credential.
	dropOthers = db.Q[string](`DELETE FROM signins WHERE user_id = $1 AND hash NOT LIKE $2 RETURNING hash`)

	issuersOf      = db.Q[string](`SELECT DISTINCT issuer FROM identities WHERE user_id = $1 ORDER BY issuer`)
	userByIdentity = db.Q[string](`SELECT user_id FROM identities WHERE issuer = $1 AND subject = $2`)
	link           = db.SWith[linkArgs](`INSERT INTO identities (issuer, subject, user_id, created_at)
		VALUES (:issuer, :subject, :user_id, :created_at)
		ON CONFLICT DO NOTHING`)
)

// linkArgs are the parameters of link.
type linkArgs struct {
	Issuer, Subject, UserID string
	CreatedAt               int64
}

// armCodeArgs are the parameters of armCode.
type armCodeArgs struct {
	Email, Code              string
	ExpiresAt, Now, WindowAt int64
	Sent                     int
}

// insertSessionArgs are the parameters of insertSession.
type insertSessionArgs struct {
	Hash, UserID, AccountID string
	SignedInAt, ExpiresAt   int64
	SSOAccountID            *string
}

// Repoint lets a browser session of a user, given by the id of its credential, act
// for another account from then on. It returns db.ErrNoRows if there is no such
// session.
func (s *Service) Repoint(tx *db.Tx, userID, credentialID, accountID string) error {
	hash, err := repoint.One(tx, userID, credentialID+"%", accountID)
	if err == nil {
		tx.AfterCommit(func() { s.Forget(hash) })
	}
	return err
}

// LeaveAccount moves the sessions of a former member out of an account: they go on in
// the account that the user joined first, and end if there is none. The caller drops
// cached credentials; see ForgetUser.
func LeaveAccount(tx *db.Tx, accountID, userID string) error {
	to, ok, err := people.FirstAccount(tx, userID)
	switch {
	case err != nil:
		return err
	case ok:
		_, err = moveSessions.Exec(tx, accountID, userID, to)
	default:
		_, err = dropSessions.Exec(tx, accountID, userID)
	}
	return err
}

// EndVouched ends the browser sessions that the identity provider of tx.Account has
// vouched for, and the tokens that they have minted.
func (s *Service) EndVouched(tx *db.Tx) error {
	if err := token.EndVouched(tx); err != nil {
		return err
	}
	return s.drop(tx, dropVouched, tx.Account)
}

// drop deletes sessions by a statement that returns their hashes.
func (s *Service) drop(tx *db.Tx, which db.Query[string], args ...any) error {
	hashes, err := which.All(tx, args...)
	tx.AfterCommit(func() {
		for _, h := range hashes {
			s.Forget(h)
		}
	})
	return err
}
