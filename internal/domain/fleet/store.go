package fleet

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
)

// apart is people.Apart in microseconds, as statements have it.
const apart = "600000000"

// The index is out of range, and this does not build, once the two differ.
var _ = [1]struct{}{}[people.Apart/time.Microsecond-600_000_000]

// May is the condition that the box b may take work of the account of w: a statement in
// which it stands has boxes as b, and whatever has an account_id as w. A box of one person
// takes no other work than that person's, which the queue sees to. A box that is lent takes work
// of the repositories that it is lent to, and of no other.
const May = `(NOT ` + IsLent + ` AND (b.owner_target = 'shared'
	OR b.owner_target = 'org' AND b.account_id = w.account_id
	OR b.owner_target = 'user' AND EXISTS (SELECT 1 FROM memberships home
		WHERE home.account_id = b.account_id AND home.user_id = b.owner_id)
		AND (b.account_id = w.account_id OR EXISTS (` + Agreed + `))) OR EXISTS (` + lends + `))`

// Agreed selects the consent by which the box b takes work of the account of w, which is
// another one than its own. What was agreed to before either membership began is none, as far as
// clocks can tell; with the end of either it is forgotten, which package box sees to.
const Agreed = `SELECT c.agreed_at FROM box_consents c
	JOIN memberships here ON here.account_id = c.account_id AND here.user_id = c.user_id AND here.created_at <= c.agreed_at + ` + apart + `
	JOIN memberships home ON home.account_id = b.account_id AND home.user_id = c.user_id AND home.created_at <= c.agreed_at + ` + apart + `
	JOIN account_floors f ON f.account_id = c.account_id AND f.outside_boxes
	WHERE c.box_id = b.id AND c.user_id = b.owner_id AND c.account_id = w.account_id AND c.agreed_at IS NOT NULL`

// IsLent is the condition that the box b is lent to others.
const IsLent = `EXISTS (SELECT 1 FROM donations g WHERE g.box_id = b.id AND g.parked_at IS NULL
	AND g.kind = 'compute')`

// lends selects the repositories r of the account of w to which the box b is lent and that take
// gifts: public ones of other accounts, each of which lets boxes from outside in.
const lends = `SELECT 1` + lending + ` AND d.box_id = b.id AND r.account_id = w.account_id`

const lending = ` FROM donations d JOIN repos r ON (d.repo_id = r.id OR d.repo_id IS NULL) AND r.account_id <> d.account_id
	JOIN account_floors o ON o.account_id = r.account_id AND o.outside_boxes
	WHERE d.parked_at IS NULL AND d.kind = 'compute' AND r.enabled = TRUE AND r.private = FALSE AND r.donations_enabled = TRUE`

// MayHoldOf is MayHold of a run w, which has a repo_id too.
const MayHoldOf = `(b.account_id = w.account_id OR ` + May + ` AND (NOT ` + IsLent + ` OR EXISTS (` + lends + ` AND r.id = w.repo_id)))`

// MayHold is the condition that the box b may go on with a run of the account of w that it
// holds: what runs at home goes on whatever happens to the owner.
const MayHold = `(b.account_id = w.account_id OR ` + May + `)`

type rightRow struct {
	ID, Login   string
	Own         bool
	OwnerTarget string
	OwnerID     *string
	AgreedAt    *time.Time
	Lent        bool
}

// rights, and mayHold after the account of w, select by what right boxes hold runs.
const (
	rights = `SELECT b.id, a.login, CASE WHEN b.account_id = w.account_id THEN TRUE ELSE FALSE END AS own, b.owner_target, b.owner_id,
		(` + Agreed + `) AS agreed_at, ` + IsLent + ` AS lent FROM boxes b JOIN accounts a ON a.id = b.account_id CROSS JOIN (SELECT CAST(`
	mayHold = ` AS TEXT) AS account_id) w WHERE b.state <> 'revoked' AND ` + MayHold
)

var (
	// servedByAll and servedByUser list the accounts with a queue that a shared box, or
	// the box of one person, serves, the account served longest ago first.
	servedByAll  = db.Q[string](`SELECT account_id FROM queue_depths WHERE pending > 0 ORDER BY served_at, account_id`)
	servedByUser = db.Q[string](`SELECT w.account_id FROM boxes b CROSS JOIN memberships m CROSS JOIN queue_depths w
		WHERE b.id = $1 AND m.user_id = b.owner_id AND w.account_id = m.account_id AND w.pending > 0 AND ` + May + `
		ORDER BY w.served_at, w.account_id`)

	// servedAsGift is servedByAll for a box that is lent.
	servedAsGift = db.Q[string](`SELECT w.account_id FROM boxes b CROSS JOIN queue_depths w WHERE b.id = $1 AND w.pending > 0
		AND EXISTS (` + lends + `) ORDER BY w.served_at, w.account_id`)
	// lentTo lists the repositories of an account whose work a lent box takes.
	lentTo = db.Q[string](`SELECT DISTINCT r.id` + lending + ` AND d.box_id = $1 AND r.account_id = $2 ORDER BY r.id`)

	lettingIn = db.Q[bool](`SELECT outside_boxes FROM account_floors WHERE account_id = $1`)
)
