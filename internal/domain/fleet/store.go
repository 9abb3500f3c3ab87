package fleet

import (
	"time"

	"yardmaster/internal/db"
)

// May is the condition that the box b may take work of the account of w: a statement in
// which it stands has boxes as b, and whatever has an account_id as w. A box of one person
// takes no other work than that person's, which the queue sees to.
const May = `(b.owner_target = 'shared'
	OR b.owner_target = 'org' AND b.account_id = w.account_id
	OR b.owner_target = 'user' AND EXISTS (SELECT 1 FROM memberships home
		WHERE home.account_id = b.account_id AND home.user_id = b.owner_id)
		AND (b.account_id = w.account_id OR EXISTS (` + Agreed + `)))`

// Agreed selects the consent by which the box b takes work of the account of w, which is
// another one than its own.
const Agreed = `SELECT c.agreed_at FROM box_consents c
	JOIN memberships here ON here.account_id = c.account_id AND here.user_id = c.user_id AND here.created_at <= c.agreed_at
	JOIN memberships home ON home.account_id = b.account_id AND home.user_id = c.user_id AND home.created_at <= c.agreed_at
	JOIN account_floors f ON f.account_id = c.account_id AND f.outside_boxes
	WHERE c.box_id = b.id AND c.user_id = b.owner_id AND c.account_id = w.account_id AND c.agreed_at IS NOT NULL`

// MayHold is the condition that the box b may go on with a run of the account of w that it
// holds: what runs at home goes on whatever happens to the owner.
const MayHold = `(b.account_id = w.account_id OR ` + May + `)`

type rightRow struct {
	ID, Login   string
	Own         bool
	OwnerTarget string
	OwnerID     *string
	AgreedAt    *time.Time
}

// rights, and mayHold after the account of w, select by what right boxes hold runs.
const (
	rights = `SELECT b.id, a.login, CASE WHEN b.account_id = w.account_id THEN TRUE ELSE FALSE END AS own, b.owner_target, b.owner_id,
		(` + Agreed + `) AS agreed_at FROM boxes b JOIN accounts a ON a.id = b.account_id CROSS JOIN (SELECT CAST(`
	mayHold = ` AS TEXT) AS account_id) w WHERE b.state <> 'revoked' AND ` + MayHold
)

var (
	// servedByAll and servedByUser list the accounts with a queue that a shared box, or
	// the box of one person, serves, the account served longest ago first.
	servedByAll  = db.Q[string](`SELECT account_id FROM queue_depths WHERE pending > 0 ORDER BY served_at, account_id`)
	servedByUser = db.Q[string](`SELECT w.account_id FROM boxes b CROSS JOIN memberships m CROSS JOIN queue_depths w
		WHERE b.id = $1 AND m.user_id = b.owner_id AND w.account_id = m.account_id AND w.pending > 0 AND ` + May + `
		ORDER BY w.served_at, w.account_id`)

	lettingIn = db.Q[bool](`SELECT outside_boxes FROM account_floors WHERE account_id = $1`)
)
