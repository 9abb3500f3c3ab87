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

// Every statement about one grant tells whether it is active at a given time.
const selection = `SELECT id, account_id, user_id, ai_devs, reason, (revoked_at IS NULL AND (expires_at IS NULL
		OR expires_at > $1)) AS active,
	issued_by, created_at, expires_at, revoked_at FROM grants WHERE `

var (
	byID = db.Q[EntitlementGrant](selection + `id = $2`)
	live = db.Q[EntitlementGrant](selection +
		`user_id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) ORDER BY created_at DESC, id DESC`)
	insert = db.SWith[insertArgs](`INSERT INTO grants (id, account_id, user_id, ai_devs, reason, issued_by, created_at, expires_at)
		VALUES (:id, :account_id, :user_id, :ai_devs, :reason, :issued_by, :created_at, :expires_at)`)
	park = db.S(`UPDATE grants SET revoked_at = $2, revoked_by = $3
		WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`)

	// The parameter of seats is cast: once SQLite has statistics, it plans a
	// statement anew for each value that a bare one is given.
	seats = db.Q[given](`SELECT a.seats, g.ai_devs, g.expires_at FROM accounts a LEFT JOIN grants g ON g.revoked_at IS NULL AND ` +
		counts + `CAST($1 AS TEXT)` + countsToo + `CAST($1 AS TEXT)` + countsEnd + ` WHERE a.id = CAST($1 AS TEXT)`).Kept()
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	EntitlementGrant
	CreatedAt int64
}

// counts, countsToo and countsEnd, with the id of an account twice in between,
// tell whether a grant g counts in it.
const (
	counts    = `(g.account_id = `
	countsToo = ` OR g.user_id IN (SELECT m.user_id FROM memberships m WHERE m.role = 'owner' AND NOT EXISTS (
		SELECT 1 FROM memberships o WHERE o.user_id = m.user_id AND o.role = 'owner'
		AND (o.created_at, o.account_id) < (m.created_at, m.account_id)) AND m.account_id = `
	countsEnd = `))`
)

// FreeDevs is how many AI developers an account has for free, for a query that
// lists accounts as a; the time comes behind it, and a closing bracket.
const FreeDevs = `(SELECT CAST(COALESCE(SUM(g.ai_devs), 0) AS BIGINT) FROM grants g WHERE g.revoked_at IS NULL AND ` +
	counts + `a.id` + countsToo + `a.id` + countsEnd + ` AND COALESCE(g.expires_at, 9223372036854775807) > `

// Home is the account that what a person was given counts in: the one that the
// person has owned for longest. Empty if there is none.
func Home(tx *db.Tx, userID string) (string, error) {
	return people.OldestOwned(tx, userID)
}

// given is what one grant gives, until it ends, beside the seats of the account;
// one without a grant stands for an account that has none.
type given struct {
	Seats     int64
	AIDevs    *int64 `db:"ai_devs"`
	ExpiresAt *time.Time
}

func list(tx *db.Tx, s Subject, p op.PageIn) ([]EntitlementGrant, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(selectionBy, tx.Micros()).SQL(") AS active FROM grants WHERE ")
	if s.AccountID != "" {
		b.SQL("account_id = ", s.AccountID)
	} else {
		b.SQL("user_id = ", s.UserID)
	}
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[EntitlementGrant](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}

// selectionBy is selection for a built query, which counts its parameters
// itself.
const selectionBy = `SELECT id, account_id, user_id, ai_devs, reason, issued_by, created_at, expires_at, revoked_at,
	(revoked_at IS NULL AND COALESCE(expires_at, 9223372036854775807) > `

// Seats is how many runs an account may have at once: the seats it has, and the
// AI developers that it has for free.
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

// History is the first page of what a person was given, as grant.list has it.
func History(tx *db.Tx, userID string) (op.Page[EntitlementGrant], error) {
	p := op.FirstPage(listID, paging)
	rows, err := list(tx, Subject{UserID: userID}, p)
	return op.NewPage(p, rows, key), err
}

func key(g EntitlementGrant) []string { return op.TimeKey(g.CreatedAt, g.ID) }

// Give gives a person who has no active grant one; given is false for who has.
// The caller records it as part of a larger change.
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

// book makes a grant, and lets the work go on that waits for it. It answers the
// account that the grant counts in, if there is one.
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

// changed tells who waits for work in the account of a grant's subject that its
// capacity is another, and answers the account.
func (l Ledger) changed(tx *db.Tx, of Subject) (account string, err error) {
	if account = of.AccountID; account == "" {
		account, err = Home(tx, of.UserID)
	}
	if account != "" {
		l.Hub.Notify(tx, event.QueueTopic(account), event.QueueTopic(""))
	}
	return account, err
}

// Moved tells who waits for work that a person has become an owner of an account,
// or is one no more: what the person was given may count there now, or in another
// account instead.
func (l Ledger) Moved(tx *db.Tx, accountID, userID string) error {
	if _, err := l.changed(tx, Subject{AccountID: accountID}); err != nil {
		return err
	}
	_, err := l.changed(tx, Subject{UserID: userID})
	return err
}
