// Package clock keeps a server right whose machine's clock is set.
//
// What waits until some time waits too long once the clock is set back, and
// also if the server starts with a clock that is behind the one before: Mend
// pulls it in. What runs out at some time runs out at once when the clock is
// set forward; whoever looks for that asks a Watch first.
package clock

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
)

// tolerated is what clocks are moved by all the time.
const tolerated = time.Second

// Watch notices that the clock was set. The zero value begins at the first use.
type Watch struct{ last time.Time }

// Set tells by how much the clock was set since the call before; 0 if it was
// not, or hardly.
func (w *Watch) Set() time.Duration {
	now, last := time.Now(), w.last
	w.last = now
	if last.IsZero() {
		return 0
	}
	// Sub measures what has passed, unless the time of day is all there is.
	if set := now.Round(0).Sub(last.Round(0)) - now.Sub(last); set.Abs() > tolerated {
		return set
	}
	return 0
}

// Keeper mends what a clock that was set back has put off.
type Keeper struct {
	DB     *db.DB
	Lease  time.Duration // of runs
	Logger *slog.Logger
}

// Loop mends at the start and whenever the clock was set, until ctx ends.
func (k *Keeper) Loop(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var w Watch
	w.Set()
	for owed := true; ; {
		if by := w.Set(); by != 0 {
			k.Logger.WarnContext(ctx, "the clock was set", slog.Duration("by", by))
			owed = true
		}
		if owed {
			err := k.Mend(ctx)
			if owed = err != nil; owed && ctx.Err() == nil {
				k.Logger.ErrorContext(ctx, "what a wrong clock has put off is not pulled in", slog.String("error", err.Error()))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Mend pulls in what is put off for longer than it can be meant to.
func (k *Keeper) Mend(ctx context.Context) error {
	return k.DB.Write(ctx, func(tx *db.Tx) error {
		until := tx.Now.Add(protocol.RedispatchAfter(k.Lease))
		if _, err := leases.Exec(tx, until, until.Add(tolerated)); err != nil {
			return err
		}
		for _, w := range waits {
			if _, err := w.end.Exec(tx, tx.Now, tx.Now.Add(w.longest)); err != nil {
				return err
			}
		}
		return nil
	})
}
