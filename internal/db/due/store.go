package due

import (
	"yardmaster/internal/db"
)

// An entry is in one of four states:
//
//	waits  until due_at, then promote makes it ready
//	ready  since due_at; claim gives it to a node
//	held   by a node until due_at, then promote makes it ready, as a suspect
//	aside  nothing is done; hurry makes it ready
//
// set_at is when due_at was written; 0 if due_at is a time of the calendar. fence is a random
// number of the claim. more says that the key was added while it was held. deaths counts
// holds that ran out; a suspect has had one and is worked on alone. lane is the rank and the
// account, so that one index answers both whose turn it is and what is next.
var (
	hurry = db.S(`UPDATE due SET
		more = CASE WHEN state = 'held' THEN 1 ELSE 0 END,
		tries = CASE WHEN state = 'held' THEN tries ELSE 0 END,
		deaths = CASE WHEN state = 'held' THEN deaths ELSE 0 END,
		due_at = CASE WHEN state = 'held' THEN due_at ELSE CAST($3 AS BIGINT) END,
		set_at = CASE WHEN state = 'held' THEN set_at ELSE CAST($3 AS BIGINT) END,
		state = CASE WHEN state = 'held' THEN 'held' ELSE 'ready' END
		WHERE queue = $1 AND key = $2`)
	drop = db.S(`DELETE FROM due WHERE queue = $1 AND key = $2`)

	// lanes walks from lane to lane with one look into the index each. The row with a 1 is the
	// lane of a suspect: those are taken one at a time, whose ever they are.
	lanes = db.Q[laneRow](`WITH RECURSIVE l(lane, n) AS (
			SELECT (SELECT MIN(lane) FROM due WHERE state = 'ready' AND queue = $1 AND suspect = 0 AND lane > $2), 1
			UNION ALL SELECT (SELECT MIN(due.lane) FROM due WHERE state = 'ready' AND queue = $1 AND suspect = 0 AND due.lane > l.lane), n + 1
			FROM l WHERE l.lane IS NOT NULL AND n < $3)
		SELECT lane, 0 AS suspect FROM l WHERE lane IS NOT NULL
		UNION ALL SELECT lane, 1 FROM (SELECT MIN(lane) AS lane FROM due WHERE state = 'ready' AND queue = $1 AND suspect = 1) s WHERE lane IS NOT NULL`)

	// end changes nothing if the node has not got the entry any more, or if it was added meanwhile.
	end       = db.S(`DELETE FROM due WHERE queue = $1 AND key = $2 AND state = 'held' AND fence = $3 AND more = 0`)
	restarted = db.S(`UPDATE due SET state = 'ready', deaths = deaths + 1, suspect = 1, set_at = $1 WHERE state = 'held'`)

	// clockBack starts those waits anew that were begun at a time that has not come yet.
	clockBack = db.S(`UPDATE due SET due_at = $1 + (due_at - set_at), set_at = $1 WHERE state IN ('waits', 'held') AND set_at > $2`)
	clockTold = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM due WHERE state IN ('waits', 'held') AND set_at > $1)`)

	look = db.Q[State](`SELECT state, due_at, tries, why, holder FROM due WHERE queue = $1 AND key = $2`)
	keys = db.Q[string](`SELECT key FROM due WHERE queue = $1 LIMIT $2`)
)

type laneRow struct {
	Lane    string
	Suspect int64
}

// addArgs is what add inserts.
type addArgs struct {
	Queue, Key, Lane, State string
	DueAt, SetAt            int64
}

// add keeps the wait of an entry that has failed: what is new does not hurry what the far
// side has refused. What is added while it is held is worked on once more.
func add(tx *db.Tx, a addArgs) error {
	_, err := db.Select[string](tx, db.Build(`INSERT INTO due (queue, key, lane, state, due_at, set_at) VALUES `,
		db.Tuple(a.Queue, a.Key, a.Lane, a.State, a.DueAt, a.SetAt)).SQL(` ON CONFLICT (queue, key) DO UPDATE SET
		lane = CASE WHEN excluded.lane < due.lane THEN excluded.lane ELSE due.lane END,
		more = CASE WHEN due.state = 'held' THEN 1 ELSE due.more END,
		state = CASE WHEN due.state = 'waits' AND due.tries = 0 AND excluded.due_at < due.due_at THEN excluded.state ELSE due.state END,
		set_at = CASE WHEN due.state = 'waits' AND due.tries = 0 AND excluded.due_at < due.due_at THEN excluded.set_at ELSE due.set_at END,
		due_at = CASE WHEN due.state = 'waits' AND due.tries = 0 AND excluded.due_at < due.due_at THEN excluded.due_at ELSE due.due_at END
		RETURNING key`))
	return err
}

// mine is the end of a statement that changes an entry only if the node still has it. It
// answers whether it had.
func mine(tx *db.Tx, b *db.Builder, queue, key string, fence int64) (bool, error) {
	had, err := db.Select[string](tx, b.SQL(` WHERE queue = `, queue).And("key = ", key).And("state = 'held' AND fence = ", fence).
		SQL(` RETURNING key`))
	return len(had) > 0, err
}

// renew holds an entry for longer.
func renew(tx *db.Tx, queue, key string, fence, until, now int64) (bool, error) {
	return mine(tx, db.Build(`UPDATE due SET due_at = `, until).SQL(`, set_at = `, now), queue, key, fence)
}

// moveArgs are what move sets.
type moveArgs struct {
	Queue, Key, State, Why     string
	Fence, DueAt, SetAt, Tries int64 // Tries below 0: one less
	Now                        int64 // 0, or: ready since then if it was added while it was held
}

// move ends a hold, and gives the entry another state.
func move(tx *db.Tx, a moveArgs) (bool, error) {
	b := db.Build(`UPDATE due SET why = `, a.Why)
	if a.Now == 0 {
		b.SQL(`, state = `, a.State).SQL(`, due_at = `, a.DueAt).SQL(`, set_at = `, a.SetAt)
	} else {
		b.SQL(`, state = CASE WHEN more = 1 THEN 'ready' ELSE `, a.State).
			SQL(` END, due_at = CASE WHEN more = 1 THEN CAST(`, a.Now).SQL(` AS BIGINT) ELSE CAST(`, a.DueAt).
			SQL(` AS BIGINT) END, set_at = CASE WHEN more = 1 THEN CAST(`, a.Now).SQL(` AS BIGINT) ELSE CAST(`, a.SetAt).SQL(` AS BIGINT) END`)
	}
	if a.Tries < 0 {
		b.SQL(`, tries = tries - 1`)
	} else {
		b.SQL(`, tries = `, a.Tries)
	}
	return mine(tx, b.SQL(`, more = 0, deaths = 0, suspect = 0, holder = ''`), a.Queue, a.Key, a.Fence)
}

// giveBackArgs is an entry that is given back.
type giveBackArgs struct {
	Queue, Key string
	Fence, Now int64
}

// giveBack is for what a node cuts off, or has not begun: such a try does not count.
func giveBack(tx *db.Tx, a giveBackArgs) error {
	_, err := mine(tx, db.Build(`UPDATE due SET state = 'ready', tries = tries - 1, holder = '', due_at = `, a.Now).
		SQL(`, set_at = `, a.Now), a.Queue, a.Key, a.Fence)
	return err
}

// locked leaves out what other nodes have locked. SQLite has one writer.
func locked(tx *db.Tx, b *db.Builder) *db.Builder {
	if tx.Engine() == db.Postgres {
		b.SQL(` FOR NO KEY UPDATE SKIP LOCKED`)
	}
	return b
}

// swept is a queue that has something ready; or, without a queue, when the next entry will
// be, 0 if there is none, and the time of the server, 0 if it has none.
type swept struct {
	Queue   string
	At, Now int64
}

// sweep is all that an idle node asks.
func sweep(tx *db.Tx) ([]swept, error) {
	b := db.Build(`WITH RECURSIVE q(queue) AS (
			SELECT (SELECT MIN(queue) FROM due WHERE state = 'ready')
			UNION ALL SELECT (SELECT MIN(due.queue) FROM due WHERE state = 'ready' AND due.queue > q.queue) FROM q WHERE q.queue IS NOT NULL)
		SELECT queue, 0 AS at, 0 AS now FROM q WHERE queue IS NOT NULL
		UNION ALL SELECT '', COALESCE((SELECT MIN(due_at) FROM due WHERE state IN ('waits', 'held')), 0), `)
	if tx.Engine() == db.Postgres {
		b.SQL(`(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`)
	} else {
		b.SQL(`0`)
	}
	return db.Select[swept](tx, b)
}

const promoteAtOnce = 500

// promote makes ready what has waited long enough, and what a node has held for too long. It
// answers how many.
func promote(tx *db.Tx, now int64) (int, error) {
	b := locked(tx, db.Build(`WITH pick AS MATERIALIZED (SELECT queue, key FROM due WHERE state IN ('waits', 'held') AND due_at <= `, now).
		SQL(` ORDER BY due_at LIMIT `, promoteAtOnce))
	b.SQL(`) UPDATE due SET
		deaths = deaths + CASE WHEN state = 'held' THEN 1 ELSE 0 END,
		suspect = CASE WHEN state = 'held' THEN 1 ELSE suspect END,
		state = 'ready', set_at = `, now).
		SQL(` WHERE state IN ('waits', 'held') AND due_at <= `, now).SQL(` AND (queue, key) IN (SELECT queue, key FROM pick) RETURNING queue`)
	all, err := db.Select[string](tx, b)
	return len(all), err
}

// gone makes ready what nodes had that are gone. It answers how many.
func gone(tx *db.Tx, nodes []string, now int64) (int, error) {
	all, err := db.Select[string](tx, db.Build(`UPDATE due SET state = 'ready', deaths = deaths + 1, suspect = 1, set_at = `, now).
		SQL(` WHERE state = 'held'`).In("holder", nodes).SQL(` RETURNING key`))
	return len(all), err
}

// taken is an entry that a claim has given to this node.
type taken struct {
	Key, Lane              string
	Tries, Suspect, Deaths int64
}

// hold is by which a claim holds.
type hold struct {
	queue, holder     string
	now, until, fence int64
}

// take takes entries of several lanes in one statement.
//
// MATERIALIZED is not for speed: PostgreSQL may run a subquery once for each row of a join, and
// with SKIP LOCKED each run answers other rows, so more than LIMIT are taken.
func take(tx *db.Tx, h hold, plan []wish) ([]taken, error) {
	b := db.Build(`WITH pick AS MATERIALIZED (`)
	for i, p := range plan {
		if i > 0 {
			b.SQL(` UNION ALL `)
		}
		suspect := 0
		if p.suspect {
			suspect = 1
		}
		b.SQL(`SELECT key FROM (SELECT key FROM due WHERE state = 'ready' AND queue = `, h.queue).And("suspect = ", suspect).
			And("lane = ", p.lane).SQL(` ORDER BY due_at LIMIT `, p.n)
		locked(tx, b).SQL(`) l`)
	}
	b.SQL(`) UPDATE due SET state = 'held', tries = tries + 1, more = 0, due_at = `, h.until).SQL(`, set_at = `, h.now).
		SQL(`, fence = `, h.fence).SQL(`, holder = `, h.holder).SQL(` WHERE queue = `, h.queue).
		SQL(` AND state = 'ready' AND key IN (SELECT key FROM pick) RETURNING key, lane, tries, suspect, deaths`)
	return db.Select[taken](tx, b)
}

// unsynced spares the claim the wait for the disk on PostgreSQL. If the server crashes and
// forgets it, the entry is ready again and the fence stops whoever had it.
func unsynced(tx *db.Tx) error {
	if tx.Engine() != db.Postgres {
		return nil
	}
	_, err := db.Select[string](tx, db.Build(`SELECT set_config('synchronous_commit', 'off', TRUE)`))
	return err
}

type keyed struct {
	Key    string
	State  string
	DueAt  int64
	Tries  int64
	Why    string
	Holder string
}

const looksAtOnce = 256

// lookMany reads what is known of many entries.
func lookMany(tx *db.Tx, queue string, all []string) (map[string]State, error) {
	out := map[string]State{}
	for len(all) > 0 {
		n := min(len(all), looksAtOnce)
		rows, err := db.Select[keyed](tx, db.Build(`SELECT key, state, due_at, tries, why, holder FROM due WHERE queue = `, queue).
			In("key", all[:n]))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.Key] = State{State: r.State, DueAt: db.Time(r.DueAt), Tries: r.Tries, Why: r.Why, Holder: r.Holder}
		}
		all = all[n:]
	}
	return out, nil
}
