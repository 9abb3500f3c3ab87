package db

import (
	"context"
	"time"
)

// Hourly is work of a loop that a node does once an hour, such as the removal of old rows.
// The zero value is due. It is for one goroutine.
type Hourly struct{ last time.Time }

// Do runs fn in a transaction if the last run began an hour ago or earlier, or after the clock
// was set back. A run that has failed is not repeated before its hour is over.
func (h *Hourly) Do(ctx context.Context, d *DB, fn func(*Tx) error) error {
	var now time.Time
	if err := d.Read(ctx, func(tx *Tx) error { now = tx.Now; return nil }); err != nil {
		return err
	}
	if now.Sub(h.last) < time.Hour && !now.Before(h.last) {
		return nil
	}
	h.last = now
	return d.Write(ctx, fn)
}
