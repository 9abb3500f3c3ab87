// Package clock keeps a server right whose machine's clock is set.
//
// What waits until some time waits too long once the clock is set back, and
// also if the server starts with a clock that is behind the one before: a
// Keeper notices, and calls those who own what waits. What runs out at some
// time runs out at once when the clock is set forward; a loop that looks for
// that asks a Watch first.
package clock

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
)

// Tolerated is what clocks are moved by all the time.
const Tolerated = time.Second

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
	if set := now.Round(0).Sub(last.Round(0)) - now.Sub(last); set.Abs() > Tolerated {
		return set
	}
	return 0
}

// Keeper has those who own what waits pull in what a clock that was set back
// has put off.
type Keeper struct {
	DB *db.DB
	// Waits are called in one transaction: each pulls in what is put off for
	// longer, from the transaction's time on, than it can be meant to be.
	Waits  []func(tx *db.Tx) error
	Logger *slog.Logger
}

// Loop calls Mend at the start and whenever the clock was set, until ctx ends.
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
		in, end := observe.Pass(ctx, "clock.keep")
		if owed {
			err := k.Mend(in)
			observe.Failed(in, err)
			if owed = err != nil; owed && ctx.Err() == nil {
				k.Logger.ErrorContext(ctx, "what a wrong clock has put off is not pulled in", slog.String("error", err.Error()))
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

// Mend calls the owners of what waits. To end a wait early is no harm: it is a
// try that comes sooner.
func (k *Keeper) Mend(ctx context.Context) error {
	return k.DB.Write(ctx, func(tx *db.Tx) error {
		for _, pullIn := range k.Waits {
			if err := pullIn(tx); err != nil {
				return err
			}
		}
		return nil
	})
}
