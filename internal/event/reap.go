package event

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	// reapAtOnce is how many rows of a chain one transaction removes; oldest and ourOldest read as many.
	reapAtOnce = 2000
	// reapSlack is how much older than the limit the oldest row has to be before a chain is
	// cut, so that a chain says at most once a day what went.
	reapSlack = 24 * time.Hour
	reapEvery = 10 * time.Minute
)

// ReapedData says which rows of a chain are gone.
type ReapedData struct {
	Rows    int64     `json:"rows" doc:"how many rows were removed"`
	Through int64     `json:"through_seq" doc:"number of the last of them; what is left begins behind it"`
	Hash    string    `json:"through_hash" doc:"its hash, which the next row has as prev_hash"`
	Before  time.Time `json:"before" doc:"all of them were older than this"`
}

// ReapedEvent records that the oldest rows of a chain are gone. Its subject is the hash of the
// last one.
var ReapedEvent = Declare[ReapedData]("audit.reaped", Audience(policy.ReadSessions),
	"The oldest rows of the account's record were removed, as they were older than it is kept.")

// Cut is where a chain begins: behind row Through, whose hash was Hash. The zero value is a chain
// that begins with its first row.
type Cut struct {
	Through int64  `db:"cut_seq"`
	Hash    string `db:"cut_hash"`
	Told    int64  `db:"cut_told"` // the row that says so
}

// unsaid is what is wrong with a chain that was cut by somebody else.
const unsaid = "rows up to number %d are gone, and the record does not say so"

// Old counts the rows that are older than a time.
func Old(tx *db.Tx, at time.Time) (int64, error) { return countOld.One(tx, at) }

// Reaper removes the rows of the record that are older than Keep.
type Reaper struct {
	DB     *db.DB
	Logger *slog.Logger
	Keep   time.Duration

	hourly db.Hourly
}

// Loop removes old rows until ctx ends. Several nodes may run it.
func (r *Reaper) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	observe.Every(ctx, "audit.reap", reapEvery, func(ctx context.Context) {
		due := false
		err := r.hourly.Do(ctx, r.DB, func(*db.Tx) error { due = true; return nil })
		if err == nil && due {
			err = r.Pass(ctx)
		}
		if err != nil {
			observe.Complain(ctx, r.Logger, "remove old rows of the record", err)
		}
	})
	return nil
}

// Pass cuts each chain whose oldest row is a day older than Keep.
func (r *Reaper) Pass(ctx context.Context) error {
	for ctx.Err() == nil {
		var due []string
		err := r.DB.Read(ctx, func(tx *db.Tx) (err error) {
			before := tx.Now.Add(-r.Keep - reapSlack)
			if due, err = cutDue.All(tx, before); err != nil {
				return err
			}
			ours, err := ourCutDue.One(tx, before)
			if ours {
				due = append(due, "")
			}
			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}
		for _, account := range due {
			if err := r.reap(ctx, account); err != nil {
				return fmt.Errorf("of account %q: %w", account, err)
			}
		}
	}
	return ctx.Err()
}

// reap removes the old rows of one chain.
func (r *Reaper) reap(ctx context.Context, account string) error {
	for more := true; more; {
		err := r.DB.Write(db.WithAccount(ctx, account), func(tx *db.Tx) (err error) {
			more, err = cut(tx, account, tx.Now.Add(-r.Keep))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cut removes rows of one chain that are older than a time, reapAtOnce at most. The chain says
// so in its next row, which nobody else writes before the end of the transaction, as its head is
// locked.
func cut(tx *db.Tx, account string, before time.Time) (more bool, err error) {
	h, ok, err := lockCut.Maybe(tx, account)
	if err != nil || !ok {
		return false, err
	}
	var rows []oldRow
	if account == "" {
		rows, err = ourOldest.All(tx, h.Through)
	} else {
		rows, err = oldest.All(tx, account, h.Through)
	}
	if err != nil {
		return false, err
	}
	n := 0
	for n < len(rows) && rows[n].At.Before(before) {
		n++
	}
	if n == 0 {
		return false, nil
	}
	last := rows[n-1]
	if account == "" {
		_, err = removeOurs.Exec(tx, last.Seq)
	} else {
		_, err = removeOld.Exec(tx, account, last.Seq)
	}
	if err != nil {
		return false, err
	}
	if _, err := cutHead.Exec(tx, cutArgs{account, Cut{last.Seq, last.Hash, h.Seq + 1}}); err != nil {
		return false, err
	}
	return n == reapAtOnce, ReapedEvent.Record(tx, Subject{ID: last.Hash, Account: account},
		ReapedData{Rows: int64(n), Through: last.Seq, Hash: last.Hash, Before: before.UTC().Truncate(time.Millisecond)})
}

// CutOf returns where the chain of an account begins; "" is the platform's. why says what is
// wrong with it: a chain that was cut says so itself, in a row that fits.
func CutOf(tx *db.Tx, account string) (c Cut, why string, err error) {
	c, ok, err := selectCut.Maybe(tx, account)
	if err != nil || !ok || c.Through == 0 {
		return c, "", err
	}
	var r chainRow
	if account == "" {
		r, ok, err = ourTelling.Maybe(tx, c.Told)
	} else {
		r, ok, err = tellingRow.Maybe(tx, account, c.Told)
	}
	if err != nil {
		return c, "", err
	}
	if !ok && account != "" {
		why, err = closed(tx, account, c)
		return c, why, err
	}
	if !ok || r.Kind != ReapedEvent.Name() || r.Object != c.Hash {
		return c, fmt.Sprintf(unsaid, c.Through), nil
	}
	var said ReapedData
	hash, err := r.sum()
	if err != nil || json.Unmarshal([]byte(r.Data), &said) != nil || hash != r.Hash || said.Through != c.Through || said.Hash != c.Hash {
		return c, fmt.Sprintf(unsaid, c.Through), err
	}
	return c, "", nil
}
