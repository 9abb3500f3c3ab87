package due

import (
	"sync"
	"time"

	"yardmaster/internal/db"
)

// drift is a difference to the server's time that is no more than the way there and back.
const drift = 20 * time.Millisecond

// setBack is how far a time must go back to have been set.
const setBack = time.Second

// clock carries the time of the database's server on by the monotonic clock of the node, or
// follows the time of transactions. The zero value knows no time yet.
type clock struct {
	mu   sync.Mutex
	base time.Time // the time at mono
	mono time.Time
	fell bool // the time was set back
}

// now is the time of the server; false if it has not told it yet.
func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.Add(time.Since(c.mono)), !c.mono.IsZero()
}

// follow takes over the time that the server has told.
func (c *clock) follow(server time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mono.IsZero() {
		c.base, c.mono = server, time.Now()
		return
	}
	if by := server.Sub(c.base.Add(time.Since(c.mono))); by.Abs() > drift {
		c.base, c.mono = server, time.Now()
		c.fell = c.fell || by < -setBack
	}
}

// seen is follow for the time of a transaction, which is not carried on.
func (c *clock) seen(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fell = c.fell || now.Before(c.base.Add(-setBack))
	c.base = now
}

// back tells whether the time was set back since the last call.
func (c *clock) back() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	fell := c.fell
	c.fell = false
	return fell
}

// now is the time by which entries are due: the server's, where it has one and nobody gave
// the database another clock.
func (k *Kernel) now(tx *db.Tx) time.Time {
	if k.served() {
		if now, ok := k.clock.now(); ok {
			return now.UTC().Truncate(time.Microsecond)
		}
	}
	return tx.Now
}

func (k *Kernel) served() bool { return k.DB.Engine() == db.Postgres && (k.own || !k.DB.OwnClock()) }

// clockSet starts waits anew that a clock which was set back has made too long.
func (k *Kernel) clockSet(tx *db.Tx) error {
	now := k.now(tx)
	tx.AfterCommit(k.Wake)
	_, err := clockBack.Exec(tx, db.Micros(now), db.Micros(now.Add(setBack)))
	return err
}
