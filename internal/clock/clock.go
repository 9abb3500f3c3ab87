// Package clock keeps a server correct while its machine's clock is set.
//
// After the clock is set back, everything that waits until some time waits too long;
// the same holds if the server starts with a clock behind that of its last run. A
// Keeper notices this and calls the owners of the waits. After the clock is set
// forward, everything with a deadline expires at once; a loop that ends such things
// asks a Watch first.
package clock

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
)

// Tolerated is the size of steps that clocks make all the time.
const Tolerated = time.Second

// Watch notices when the clock is set. The zero value starts at the first use.
type Watch struct{ last time.Time }

// Set returns by how much the clock was set since the last call; 0 if it was not, or
// by no more than Tolerated.
func (w *Watch) Set() time.Duration {
	now, last := time.Now(), w.last
	w.last = now
	if last.IsZero() {
		return 0
	}
	// Sub uses the monotonic clock; Round(0) leaves only the time of day.
	if set := now.Round(0).Sub(last.Round(0)) - now.Sub(last); set.Abs() > Tolerated {
		return set
	}
	return 0
}

// Keeper lets the owners of waits shorten them after the clock was set back.
type Keeper struct {
	DB *db.DB
	// Waits are called in one transaction. Each shortens the waits of one owner that
	// are longer, from the transaction's time on, than they can be meant to be.
	Waits  []func(tx *db.Tx) error
	Logger *slog.Logger
}

// Loop calls ShortenWaits at the start and whenever the clock was set, until ctx
// ends.
func (k *Keeper) Loop(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var w Watch
	w.Set()
	for due := true; ; {
		if by := w.Set(); by != 0 {
			k.Logger.WarnContext(ctx, "the clock was set", slog.Duration("by", by))
			due = true
		}
		in, end := observe.Pass(ctx, "clock.keep")
		if due {
			err := k.ShortenWaits(in)
			observe.Failed(in, err)
			if due = err != nil; due && ctx.Err() == nil {
				k.Logger.ErrorContext(ctx, "waits that a wrong clock has made too "+
					"long could not be shortened", slog.String("error", err.Error()))
			}
		}
		end()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ShortenWaits calls Waits. A wait that ends too early does no harm: it only means an
// early try.
func (k *Keeper) ShortenWaits(ctx context.Context) error {
	return k.DB.Write(ctx, func(tx *db.Tx) error {
		for _, shorten := range k.Waits {
			if err := shorten(tx); err != nil {
				return err
			}
		}
		return nil
	})
}
