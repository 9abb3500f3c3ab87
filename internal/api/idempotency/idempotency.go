// Package idempotency keeps the answers for the header Idempotency-Key: the answer
// to a write is kept for a day, and a retry gets the same answer instead of running
// again.
//
// A request claims a key by inserting its row, in which only one of several equal
// requests succeeds, on whichever node they run. The transactions in which the
// request then changes something also keep its answer, for rows of the API that
// know the answer by then (op.Answers). For other rows they mark the key's row. So
// if a server dies, the row tells whether the write took effect: if not, the next
// retry runs it; if so, no retry runs it again.
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
	twinWait = 10 * time.Second // how long to wait for an equal request that is running
	// abandoned is the age at which an unanswered claim counts as left by a dead
	// server. If its request is still running, it finds its claim taken over and
	// cannot commit.
	abandoned = time.Minute
	sweep     = time.Hour
	// pollEvery is the interval of the checks for an answer from another node,
	// whose notice may be lost.
	pollEvery = 200 * time.Millisecond
)

// Ledger keeps answers in the database. It implements op.Ledger.
type Ledger struct {
	DB       *db.DB
	Hub      *event.Hub
	Logger   *slog.Logger
	Process  string        // of this server, which begins the claims of all of its Ledgers; may be empty
	Patience time.Duration // how long to wait for an equal request that is running; 10 s when zero
}

// Restarted deletes the unanswered claims of the previous server, so that retries
// need not wait until these count as abandoned. It is for a database with a single
// server.
func (l *Ledger) Restarted(ctx context.Context) error {
	return l.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := disown.Exec(tx)
		return err
	})
}

// Gone deletes the unanswered claims of servers that are gone, by their Process, unless they took effect.
func Gone(tx *db.Tx, processes []string) error {
	for _, p := range processes {
		if _, err := leave.Exec(tx, p+".", p+"/"); err != nil { // "/" is the character after "."
			return err
		}
	}
	return nil
}

// Once implements op.Ledger.
func (l *Ledger) Once(ctx context.Context, u op.Use, run func(context.Context) op.Kept) (op.Kept, bool, error) {
	mine := id.New()
	if l.Process != "" {
		mine = l.Process + "." + mine
	}
	stored, ok, err := l.claim(ctx, u, mine)
	if err != nil || ok {
		return stored, ok, err
	}
	return l.hold(ctx, u, mine, run), false, nil
}

// claim claims the key, or returns the answer that is stored under it. It waits for
// an equal request that is running. It returns the faults idempotency-in-flight and
// idempotency-conflict.
func (l *Ledger) claim(ctx context.Context, u op.Use, mine string) (a op.Kept, stored bool, err error) {
	wait, cancel := context.WithTimeoutCause(ctx, cmp.Or(l.Patience, twinWait),
		inFlight("A request with this Idempotency-Key is still being answered."))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		notice := l.Hub.Watch(topic(u))
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
			return a, false, fault.Reason("idempotency-conflict", "This Idempotency-Key was used for another request: "+
				"by another credential, for another path or with another body.")
		case r.Status != 0:
			return op.Kept{Status: r.Status, ContentType: r.ContentType, Body: r.Body}, true, nil
		}
		select {
		case <-notice:
		case <-tick.C:
		case <-wait.Done():
			return a, false, context.Cause(wait)
		}
	}
}

// attempt tries to claim the key once. won tells whether it has; otherwise r is the
// existing row.
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
		r, err = find.One(tx, u.Account, u.Key) // another request was faster
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

// hold runs the request and then stores its answer or releases the claim.
func (l *Ledger) hold(ctx context.Context, u op.Use, mine string, run func(context.Context) op.Kept) op.Kept {
	var a op.Kept                     // stays empty if run panics
	var early atomic.Pointer[op.Kept] // the answer that was stored with the change
	var over atomic.Bool
	defer func() {
		over.Store(true)
		if e := early.Load(); e != nil && a.Status == e.Status && a.ContentType == e.ContentType && bytes.Equal(a.Body, e.Body) {
			return
		}
		// The answer is stored even if its caller has gone. If storing fails, the
		// claim stays like that of a dead server.
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
			l.Logger.LogAttrs(ctx, slog.LevelError, "an answer could not be kept for retries",
				slog.String("error", err.Error()))
		}
	}()
	a = run(db.BeforeCommit(ctx, func(tx *db.Tx) error {
		if over.Load() {
			return nil // work that continues after the answer does not belong to the claim
		}
		n, err := l.note(tx, u, mine, &early)
		if err == nil && n == 0 {
			err = inFlight("The request took so long that a retry with its Idempotency-Key went first.")
		}
		return err
	}))
	return a
}

// note marks that the claim took effect, and stores the answer if it is known. It
// returns 0 if the claim was taken over.
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

// Loop deletes rows that are older than a day, until ctx ends.
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
			l.Logger.LogAttrs(ctx, slog.LevelWarn, "old idempotency keys could not be forgotten",
				slog.String("error", err.Error()))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
