package nodes

import (
	"cmp"
	"context"
	"slices"

	"yardmaster/internal/db"
)

// minute is how many seconds a slot that was taken counts.
const minute = 60

// Counts is what all nodes together take of buckets within a minute, which slides in steps of a second of the
// database's clock. Nodes draw slots from a bucket, several at a time.
type Counts struct{ DB *db.DB }

// Drawn is what a node has got from a bucket.
type Drawn struct {
	Granted int   // slots
	Taken   int   // by all nodes, with these
	Frees   int   // whole seconds until the oldest is free, 1 to 60; 0: none is taken
	Second  int64 // in which they were taken, for Return
}

// Rest are slots that were drawn and not spent.
type Rest struct {
	Bucket string
	Second int64
	Slots  int
}

// Draw takes up to want slots of a bucket that has the most within a minute: no more than a quarter of those
// that are left, so that other nodes find some, and one at least while there is one.
func (c Counts) Draw(ctx context.Context, bucket string, most, want int) (d Drawn, err error) {
	err = c.DB.Write(ctx, func(tx *db.Tx) error {
		if err := alone(tx, bucket); err != nil {
			return err
		}
		now, err := clock(tx)
		if err != nil {
			return err
		}
		second := now / 1_000_000
		sum, err := takenOf.One(tx, bucket, second-minute)
		if err != nil {
			return err
		}
		d = Drawn{Taken: int(sum.Taken), Second: second}
		if free := most - d.Taken; free > 0 {
			d.Granted = min(want, max(1, free/4))
			d.Taken += d.Granted
			if _, err := takeSlots.Exec(tx, bucket, second, d.Granted); err != nil {
				return err
			}
		}
		if sum.Oldest == 0 {
			sum.Oldest = second
		}
		d.Frees = int(max(1, min(minute, sum.Oldest+minute-second)))
		return nil
	})
	return d, err
}

// Return gives slots back that were not spent.
func (c Counts) Return(ctx context.Context, all []Rest) error {
	// Two nodes that return slots of the same buckets lock them in one order.
	slices.SortFunc(all, func(a, b Rest) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return c.DB.Write(ctx, func(tx *db.Tx) error {
		for _, r := range all {
			if _, err := returnSlots.Exec(tx, r.Bucket, r.Second, r.Slots); err != nil {
				return err
			}
		}
		return nil
	})
}

// Tidy removes what does not count any more.
func (c Counts) Tidy(ctx context.Context) error {
	return c.DB.Write(ctx, func(tx *db.Tx) error {
		now, err := clock(tx)
		if err != nil {
			return err
		}
		_, err = oldSlots.Exec(tx, now/1_000_000-2*minute)
		return err
	})
}
