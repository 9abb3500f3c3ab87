package grant

import (
	"fmt"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// selection computes active for the time $1.
const selection = `SELECT id, account_id, user_id, ai_devs, reason, (revoked_at IS NULL AND (expires_at IS NULL
		OR expires_at > $1)) AS active,
	issued_by, created_at, expires_at, revoked_at FROM grants WHERE `

var (
	byID = db.Q[EntitlementGrant](selection + `id = $2`)
	live = db.Q[EntitlementGrant](selection +
		`user_id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) ORDER BY created_at DESC, id DESC`)
	insert = db.SWith[insertArgs](`INSERT INTO grants (id, account_id, user_id, ai_devs, reason, issued_by, created_at, expires_at)
		VALUES (:id, :account_id, :user_id, :ai_devs, :reason, :issued_by, :created_at, :expires_at)`)
	revokeGrant = db.S(`UPDATE grants SET revoked_at = $2, revoked_by = $3
		WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`)

	// The parameter of seats is cast: once SQLite has statistics, it plans a
	// statement anew for each value of a parameter without a cast.
	seats = db.Q[given](`SELECT a.seats, g.ai_devs, g.expires_at FROM accounts a LEFT JOIN grants g ON g.revoked_at IS NULL AND ` +
		counts + `CAST($1 AS TEXT)` + countsToo + `CAST($1 AS TEXT)` + countsEnd + ` WHERE a.id = CAST($1 AS TEXT)`).Kept()
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	EntitlementGrant
	CreatedAt int64
}

// counts, countsToo and countsEnd, with the id of an account twice in between, test
// whether a grant g counts in that account.
const (
	counts    = `(g.account_id = `
	countsToo = ` OR g.user_id IN (SELECT m.user_id FROM memberships m WHERE m.role = 'owner' AND NOT EXISTS (
		SELECT 1 FROM memberships o WHERE o.user_id = m.user_id AND o.role = 'owner'
		AND (o.created_at, o.account_id) < (m.created_at, m.account_id)) AND m.account_id = `
	countsEnd = `))`
)

// FreeDevs is the SQL expression for the number of free AI developers of an account
// a. The query that uses it appends the present time and a closing bracket.
const FreeDevs = `(SELECT CAST(COALESCE(SUM(g.ai_devs), 0) AS BIGINT) FROM grants g WHERE g.revoked_at IS NULL AND ` +
	counts + `a.id` + countsToo + `a.id` + countsEnd + ` AND COALESCE(g.expires_at, 9223372036854775807) > `

// Home returns the account in which the grants of a user count: the one that the user
// has owned longest. It is empty if there is none.
func Home(tx *db.Tx, userID string) (string, error) {
	return people.OldestOwned(tx, userID)
}

// given is one grant that counts in an account, with the account's seats. An account
// without grants has one row whose AIDevs is nil.
type given struct {
	Seats     int64
	AIDevs    *int64 `db:"ai_devs"`
	ExpiresAt *time.Time
}

func list(tx *db.Tx, s Subject, p op.PageIn) ([]EntitlementGrant, error) {
	b := db.Build(selectionBy, tx.Micros()).SQL(") AS active FROM grants WHERE ")
	if s.AccountID != "" {
		b.SQL("account_id = ", s.AccountID)
	} else {
		b.SQL("user_id = ", s.UserID)
	}
	return db.NewestFirst[EntitlementGrant](tx, b, p)
}

// selectionBy is selection for db.Build, which numbers its parameters itself.
const selectionBy = `SELECT id, account_id, user_id, ai_devs, reason, issued_by, created_at, expires_at, revoked_at,
	(revoked_at IS NULL AND COALESCE(expires_at, 9223372036854775807) > `

// Seats returns how many runs an account may have at once: its seats plus its free AI
// developers. It returns db.ErrNoRows if there is no such account.
func Seats(tx *db.Tx, accountID string) (n int64, err error) {
	all, err := seats.All(tx, accountID)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("seats: %w", db.ErrNoRows)
	}
	for i, g := range all {
		if i == 0 {
			n = g.Seats
		}
		if g.AIDevs != nil && (g.ExpiresAt == nil || g.ExpiresAt.After(tx.Now)) {
			n += *g.AIDevs
		}
	}
	return n, err
}

// History returns the first page of the grants to a user, as grant.list shows it.
func History(tx *db.Tx, userID string) (op.Page[EntitlementGrant], error) {
	p := op.FirstPage(listID, paging)
	rows, err := list(tx, Subject{UserID: userID}, p)
	return op.NewPage(p, rows, key), err
}

func key(g EntitlementGrant) []string { return op.TimeKey(g.CreatedAt, g.ID) }

// Give books the gift for a user who has no active grant; otherwise given is false.
// The caller records the event. It returns db.ErrNoRows if there is no such user.
func (l Ledger) Give(tx *db.Tx, userID string, gift Gift) (given bool, err error) {
	_, given, err = l.give(tx, userID, gift)
	return given, err
}

func (l Ledger) give(tx *db.Tx, userID string, gift Gift) (g EntitlementGrant, given bool, err error) {
	if _, err := people.Lock(tx, userID); err != nil {
		return g, false, err
	}
	held, err := live.All(tx, tx.Micros(), userID)
	if err != nil || len(held) > 0 {
		return append(held, g)[0], false, err
	}
	g, _, err = l.book(tx, Subject{UserID: userID}, gift.grant(tx.Now))
	return g, true, err
}

// book inserts a grant and wakes claims. It returns the account in which the grant
// counts, if there is one.
func (l Ledger) book(tx *db.Tx, to Subject, g EntitlementGrant) (_ EntitlementGrant, account string, err error) {
	g.ID, g.AccountID, g.UserID, g.Active, g.CreatedAt = id.New(), db.NullText(to.AccountID), db.NullText(to.UserID), true, tx.Now
	if g.IssuedBy == "" {
		g.IssuedBy = policy.From(tx.Context()).Label()
	}
	if _, err = insert.Exec(tx, insertArgs{EntitlementGrant: g, CreatedAt: tx.Micros()}); err == nil {
		account, err = l.changed(tx, to)
	}
	return g, account, err
}

// changed wakes the claims that wait in the account in which a grant of the subject
// counts, and returns that account.
func (l Ledger) changed(tx *db.Tx, of Subject) (account string, err error) {
	if account = of.AccountID; account == "" {
		account, err = Home(tx, of.UserID)
	}
	if account != "" {
		l.Hub.Notify(tx, event.QueueTopic(account), event.QueueTopic(""))
	}
	return account, err
}

// Moved wakes the claims that wait because a user has become an owner of an account,
// or is an owner no more: the user's grants may now count in that account or in
// another.
func (l Ledger) Moved(tx *db.Tx, accountID, userID string) error {
	if _, err := l.changed(tx, Subject{AccountID: accountID}); err != nil {
		return err
	}
	_, err := l.changed(tx, Subject{UserID: userID})
	return err
}

// Counts tells whether a grant counts in an account now.
func Counts(tx *db.Tx, accountID string) (bool, error) {
	all, err := seats.All(tx, accountID)
	for _, g := range all {
		if g.AIDevs != nil && (g.ExpiresAt == nil || g.ExpiresAt.After(tx.Now)) {
			return err == nil, err
		}
	}
	return false, err
}
