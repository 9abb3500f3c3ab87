// Package idempotency is the ledger behind the Idempotency-Key header: what
// was answered to a write is kept for a day, and a retry is told the same
// instead of running again.
//
// A key is claimed by inserting its row, which only one of many twins can, on
// whichever node they are. The very transactions in which the claim's holder
// changes something keep the answer, too, for rows that know it by then
// (op.Answers). For others they mark the row. So when a holder dies, its row
// tells whether the write took effect: if not, the next retry runs it; if so,
// nobody does again.
package idempotency

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

const (
	kept     = 24 * time.Hour
	patience = 10 * time.Second // with a twin in flight
	// abandoned is the age of an unanswered claim whose holder counts as gone.
	// One that is not finds its claim taken over and cannot commit.
	abandoned = time.Minute
	sweep     = time.Hour
	// look is how often a twin on another node is looked for, which need not
	// tell us that it is done.
	look = 200 * time.Millisecond
)

// Ledger keeps answers in the database.
type Ledger struct {
	DB       *db.DB
	Hub      *event.Hub
	Logger   *slog.Logger
	Patience time.Duration // with a twin in flight; 10 s when zero
}

// Restarted lets go of the claims of the server before, so that retries need not
// wait until they count as abandoned. It is for a database with one server.
func (l *Ledger) Restarted(ctx context.Context) error {
	return l.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := disown.Exec(tx)
		return err
	})
}

// Once is what op.Ledger says.
func (l *Ledger) Once(ctx context.Context, u op.Use, run func(context.Context) op.Kept) (op.Kept, bool, error) {
	mine := id.New()
	stored, ok, err := l.claim(ctx, u, mine)
	if err != nil || ok {
		return stored, ok, err
	}
	return l.hold(ctx, u, mine, run), false, nil
}

// claim makes the key ours, or answers what is stored under it. A twin in
// flight is waited for.
func (l *Ledger) claim(ctx context.Context, u op.Use, mine string) (a op.Kept, stored bool, err error) {
	wait, cancel := context.WithTimeoutCause(ctx, cmp.Or(l.Patience, patience), inFlight("A request with this Idempotency-Key is still being answered."))
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		news := l.Hub.Watch(topic(u))
		var r row
		won := false
		err := l.DB.Write(ctx, func(tx *db.Tx) (err error) {
			r, won, err = attempt(tx, u, mine)
			return err
		})
		switch {
		case err != nil:
			return a, false, fmt.Errorf("claim an idempotency key: %w", err)
		case won:
			return a, false, nil
		case r.Print != u.Print:
			return a, false, fault.Reason("idempotency-conflict", "This Idempotency-Key was used for another request: by another credential, for another path or with another body.")
		case r.Status != 0:
			return op.Kept{Status: r.Status, ContentType: r.ContentType, Body: r.Body}, true, nil
		}
		select {
		case <-news:
		case <-tick.C:
		case <-wait.Done():
			return a, false, context.Cause(wait)
		}
	}
}

// attempt tries once: won tells that the key is ours, else r is whose it is.
func attempt(tx *db.Tx, u op.Use, mine string) (r row, won bool, err error) {
	r, there, err := find.Maybe(tx, u.Account, u.Key)
	if err != nil {
		return r, false, err
	}
	if there && r.CreatedAt <= db.Micros(tx.Now.Add(-kept)) {
		if _, err := expire.Exec(tx, u.Account, u.Key, db.Micros(tx.Now.Add(-kept))); err != nil {
			return r, false, err
		}
		there = false
	}
	var n int64
	switch {
	case !there:
		if n, err = claim.Exec(tx, claimArgs{
			AccountID: u.Account, Key: u.Key, Print: u.Print, Claim: mine, CreatedAt: tx.Micros(),
		}); err != nil || n == 1 {
			return r, n == 1, err
		}
		r, err = find.One(tx, u.Account, u.Key) // another one was faster
		return r, false, err
	case r.Status == 0 && r.Print == u.Print && r.CreatedAt <= db.Micros(tx.Now.Add(-abandoned)):
		if r.Effect {
			return r, false, inFlight("The request with this Idempotency-Key took effect, and was cut off before it was answered.")
		}
		n, err = takeOver.Exec(tx, takeOverArgs{
			AccountID: u.Account, Key: u.Key, Claim: r.Claim, Mine: mine, CreatedAt: tx.Micros(),
		})
		return r, n == 1, err
	}
	return r, false, nil
}

// hold runs the request and settles the claim by its answer.
func (l *Ledger) hold(ctx context.Context, u op.Use, mine string, run func(context.Context) op.Kept) op.Kept {
	var a op.Kept                     // none, if run panics
	var early atomic.Pointer[op.Kept] // kept with the change
	var over atomic.Bool
	defer func() {
		over.Store(true)
		if e := early.Load(); e != nil && a.Status == e.Status && a.ContentType == e.ContentType && bytes.Equal(a.Body, e.Body) {
			return
		}
		// The answer is kept though its caller may be gone. If it cannot be, the
		// claim stays as that of a dead holder would.
		err := l.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
			l.Hub.Notify(tx, topic(u))
			if a.Status == 0 || a.Status >= 500 {
				_, err := release.Exec(tx, u.Account, u.Key, mine)
				return err
			}
			_, err := settle.Exec(tx, settleArgs{
				AccountID: u.Account, Key: u.Key, Claim: mine, Status: a.Status, ContentType: a.ContentType, Body: a.Body,
			})
			return err
		})
		if err != nil {
			l.Logger.LogAttrs(ctx, slog.LevelError, "an answer could not be kept for retries", slog.String("error", err.Error()))
		}
	}()
	a = run(db.BeforeCommit(ctx, func(tx *db.Tx) error {
		if over.Load() {
			return nil // what goes on after the answer is not the claim's
		}
		n, err := l.note(tx, u, mine, &early)
		if err == nil && n == 0 {
			err = inFlight("The request took so long that a retry with its Idempotency-Key went first.")
		}
		return err
	}))
	return a
}

// note marks that the claim took effect, and keeps the answer if it is known.
func (l *Ledger) note(tx *db.Tx, u op.Use, mine string, early *atomic.Pointer[op.Kept]) (n int64, err error) {
	a, ok, err := op.Answered(tx.Context())
	if err != nil {
		return 0, err
	}
	if !ok {
		return mark.Exec(tx, u.Account, u.Key, mine)
	}
	early.Store(&a)
	l.Hub.Notify(tx, topic(u))
	return settle.Exec(tx, settleArgs{
		AccountID: u.Account, Key: u.Key, Claim: mine, Status: a.Status, ContentType: a.ContentType, Body: a.Body,
	})
}

func inFlight(detail string) *fault.Error { return fault.Reason("idempotency-in-flight", detail) }

func topic(u op.Use) string { return "idempotency:" + u.Account + ":" + u.Key }

// Loop forgets what is older than a day, until ctx ends.
func (l *Ledger) Loop(ctx context.Context) error {
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	for {
		in, end := observe.Pass(ctx, "idempotency.purge")
		err := l.DB.Write(in, func(tx *db.Tx) error {
			_, err := purge.Exec(tx, db.Micros(tx.Now.Add(-kept)))
			return err
		})
		observe.Failed(in, err)
		end()
		if err != nil && ctx.Err() == nil {
			l.Logger.LogAttrs(ctx, slog.LevelWarn, "old idempotency keys could not be forgotten", slog.String("error", err.Error()))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
