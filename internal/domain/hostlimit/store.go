package hostlimit

import (
	"time"

	"yardmaster/internal/codehost/pace"
	"yardmaster/internal/db"
)

// hourRow is what is left of a resource.
type hourRow struct {
	Resource  string
	Most      int
	Remaining int
	ResetAt   time.Time
}

// paceRow is the pace of a payer.
type paceRow struct {
	BlockedUntil time.Time
	Refusals     int
	NextWriteAt  time.Time
	Contents     db.JSON[[]int64] // microseconds
}

// saveHourArgs are the parameters of saveHour.
type saveHourArgs struct {
	Host, Payer, Resource string
	Most, Remaining       int
	ResetAt               time.Time
}

// blockArgs are the parameters of block.
type blockArgs struct {
	Host, Payer string
	Until       time.Time
	Now         int64
}

// refusedArgs are the parameters of refused.
type refusedArgs struct {
	Host, Payer  string
	BlockedUntil time.Time
	Refusals     int
}

// writtenArgs are the parameters of written.
type writtenArgs struct {
	Host, Payer string
	NextWriteAt time.Time
	Contents    db.JSON[[]int64]
	Now         int64
}

// turnArgs are the parameters of turn.
type turnArgs struct {
	Host, Payer string
	NextWriteAt time.Time
	Now         int64
}

var (
	hoursOf = db.Q[hourRow](`SELECT resource, most, remaining, reset_at FROM host_limits WHERE host = $1 AND payer = $2`)
	paceOf  = db.Q[paceRow](`SELECT blocked_until, refusals, next_write_at, contents FROM host_paces WHERE host = $1 AND payer = $2`)
	// saveHour leaves a row alone that says of the same hour that less is left, or that is of
	// a later one.
	saveHour = db.SWith[saveHourArgs](`INSERT INTO host_limits (host, payer, resource, most, remaining, reset_at)
		VALUES (:host, :payer, :resource, :most, :remaining, :reset_at)
		ON CONFLICT (host, payer, resource) DO UPDATE SET most = excluded.most, remaining = excluded.remaining, reset_at = excluded.reset_at
		WHERE excluded.reset_at > host_limits.reset_at
		OR excluded.reset_at = host_limits.reset_at AND excluded.remaining < host_limits.remaining`)
	block = db.SWith[blockArgs](`INSERT INTO host_paces (host, payer, blocked_until, touched_at) VALUES (:host, :payer, :until, :now)
		ON CONFLICT (host, payer) DO UPDATE SET touched_at = excluded.touched_at,
		blocked_until = CASE WHEN excluded.blocked_until > host_paces.blocked_until THEN excluded.blocked_until
		ELSE host_paces.blocked_until END`)
	refused = db.SWith[refusedArgs](`UPDATE host_paces SET blocked_until = :blocked_until, refusals = :refusals
		WHERE host = :host AND payer = :payer`)
	// lockPace keeps other nodes from writing until the transaction ends.
	lockPace = db.S(`INSERT INTO host_paces (host, payer, touched_at) VALUES ($1, $2, $3)
		ON CONFLICT (host, payer) DO UPDATE SET touched_at = excluded.touched_at`)
	turn    = db.SWith[turnArgs](`UPDATE host_paces SET next_write_at = :next_write_at, touched_at = :now WHERE host = :host AND payer = :payer`)
	written = db.SWith[writtenArgs](`UPDATE host_paces SET next_write_at = :next_write_at, contents = :contents, touched_at = :now
		WHERE host = :host AND payer = :payer`)
	forgetHours = db.S(`DELETE FROM host_limits WHERE reset_at < $1`)
	forgetPaces = db.S(`DELETE FROM host_paces WHERE touched_at < $1`)
	resetHours  = db.S(`DELETE FROM host_limits WHERE reset_at > $1`)
	resetPaces  = db.S(`UPDATE host_paces SET blocked_until = 0, refusals = 0, next_write_at = 0, contents = '[]', touched_at = $1 WHERE touched_at > $1`)
)

// read is the state of a payer that all nodes share.
func read(tx *db.Tx, host, payer string) (s pace.State, err error) {
	hours, err := hoursOf.All(tx, host, payer)
	if err != nil {
		return s, err
	}
	s.Hours = map[string]pace.Hour{}
	for _, h := range hours {
		s.Hours[h.Resource] = pace.Hour{Limit: h.Most, Remaining: h.Remaining, Reset: h.ResetAt}
	}
	p, ok, err := paceOf.Maybe(tx, host, payer)
	if err != nil || !ok {
		return s, err
	}
	s.Blocked, s.Refusals, s.NextWrite = p.BlockedUntil, p.Refusals, p.NextWriteAt
	for _, at := range p.Contents.V {
		s.Contents = append(s.Contents, db.Time(at))
	}
	return s, nil
}

func lock(tx *db.Tx, host, payer string) error {
	_, err := lockPace.Exec(tx, host, payer, tx.Micros())
	return err
}

// write stores the pace of a payer whose row is locked, after a write.
func write(tx *db.Tx, host, payer string, s pace.State, content bool) error {
	if !content {
		_, err := turn.Exec(tx, turnArgs{Host: host, Payer: payer, NextWriteAt: s.NextWrite, Now: tx.Micros()})
		return err
	}
	a := writtenArgs{Host: host, Payer: payer, NextWriteAt: s.NextWrite, Now: tx.Micros()}
	for _, at := range s.Contents {
		a.Contents.V = append(a.Contents.V, db.Micros(at))
	}
	_, err := written.Exec(tx, a)
	return err
}

// save stores what an answer said.
func save(tx *db.Tx, host, payer string, n pace.Note) error {
	if n.Blocked > 0 {
		if _, err := block.Exec(tx, blockArgs{Host: host, Payer: payer, Until: tx.Now.Add(n.Blocked), Now: tx.Micros()}); err != nil {
			return err
		}
	}
	if n.Refused {
		if err := refuse(tx, host, payer); err != nil {
			return err
		}
	}
	if n.Resource == "" {
		return nil
	}
	_, err := saveHour.Exec(tx, saveHourArgs{
		Host: host, Payer: payer, Resource: n.Resource, Most: n.Limit, Remaining: n.Remaining, ResetAt: n.Reset,
	})
	return err
}

// refuse stores that the host has refused a payer without naming a time.
func refuse(tx *db.Tx, host, payer string) error {
	if err := lock(tx, host, payer); err != nil {
		return err
	}
	s, err := read(tx, host, payer)
	if err != nil {
		return err
	}
	s.Note(tx.Now, pace.Note{Refused: true})
	_, err = refused.Exec(tx, refusedArgs{Host: host, Payer: payer, BlockedUntil: s.Blocked, Refusals: s.Refusals})
	return err
}

// forget deletes what is older than a time.
func forget(tx *db.Tx, before time.Time) error {
	if _, err := forgetHours.Exec(tx, db.Micros(before)); err != nil {
		return err
	}
	_, err := forgetPaces.Exec(tx, db.Micros(before))
	return err
}

// longestHour is how far ahead an hour of a host may end.
const longestHour = 2 * time.Hour

// ClockSetBack forgets the limits that were noted by a clock which was set back: hosts
// say them again.
func ClockSetBack(tx *db.Tx) error {
	if _, err := resetHours.Exec(tx, db.Micros(tx.Now.Add(longestHour))); err != nil {
		return err
	}
	_, err := resetPaces.Exec(tx, tx.Micros())
	return err
}
