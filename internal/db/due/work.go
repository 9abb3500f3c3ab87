package due

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
)

// mostDeaths is how many nodes may die of an entry, or lose it.
const mostDeaths = 3

// fresh is how old a loaded row may be when its work begins.
const fresh = time.Second

var errDeadly = fmt.Errorf("nodes that worked on it died, or were cut off, %d times", mostDeaths)

// carry works on one entry and records the outcome.
func (k *Kernel) carry(ctx context.Context, w *worker, h *held) {
	k.begun.Add(1)
	ctx, over := observe.Pass(ctx, "due."+w.name)
	defer over()
	if account := h.account(); account != "" {
		ctx = db.WithAccount(ctx, account)
	}
	job, cancel := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() { defer close(kept); k.keep(job, cancel, w, h) }()
	k.point("begun")
	o := k.try(job, w, h)
	k.point("worked")
	lost := errors.Is(context.Cause(job), ErrLost)
	cancel(nil)
	<-kept
	var err error
	switch {
	case lost:
		err = ErrLost
	case ctx.Err() != nil && (o.kind == again || o.kind == failed): // cut off, not refused
		err = k.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
			k.notify(tx)
			return giveBack(tx, giveBackArgs{w.name, h.Key, h.fence, db.Micros(k.now(tx))})
		})
	default:
		err = k.record(context.WithoutCancel(ctx), w, h, o)
	}
	about := []any{slog.String("queue", w.name), slog.String("key", h.Key)}
	switch {
	case errors.Is(err, ErrLost):
		k.Logger.WarnContext(ctx, "another node has it, or it was dropped", about...)
	case err != nil:
		observe.Failed(ctx, err)
		k.Logger.ErrorContext(ctx, "the outcome was not recorded", append(about, slog.Any("error", err))...)
	}
	k.point("recorded")
}

// try loads the domain's row, unless that was done a moment ago, and does the work. If the row
// is gone, nothing is to be done.
func (k *Kernel) try(job context.Context, w *worker, h *held) (o Outcome) {
	if h.Deaths >= mostDeaths {
		return Failed(errDeadly)
	}
	if h.loaded.IsZero() || time.Since(h.loaded) > fresh {
		if err := k.DB.Read(job, func(tx *db.Tx) error { return k.loadInto(tx, w, h, time.Now()) }); err != nil {
			return Again(fmt.Errorf("load the row: %w", err))
		}
	}
	if !h.there {
		return Done(nil)
	}
	row := h.row
	h.row = nil // it may be large
	return w.work(job, h, row)
}

// record stores an outcome. If what the domain records fails, the try has failed; if the
// domain cannot give it up either, the entry is set aside.
func (k *Kernel) record(ctx context.Context, w *worker, h *held, o Outcome) error {
	err := k.DB.Write(ctx, func(tx *db.Tx) error { return k.settle(tx, w, h, o) })
	if err == nil || errors.Is(err, ErrLost) {
		return err
	}
	k.Logger.WarnContext(ctx, "the outcome could not be recorded", slog.String("queue", w.name), slog.String("key", h.Key),
		slog.Any("error", err))
	o = Again(fmt.Errorf("record the outcome: %w", err))
	if err = k.DB.Write(ctx, func(tx *db.Tx) error { return k.settle(tx, w, h, o) }); err == nil || errors.Is(err, ErrLost) {
		return err
	}
	why := fmt.Errorf("%w; and then: %w", o.err, err)
	return k.DB.Write(ctx, func(tx *db.Tx) error {
		k.move(tx, w, h, moveArgs{State: Aside, DueAt: db.Micros(k.now(tx)), Tries: h.Tries, Why: reason(why)})
		return nil
	})
}

// settle writes an outcome. The domain's rows come first and the entry last, as in Add, so
// that the two never wait for each other; if the entry is another node's by then, the
// transaction is undone.
func (k *Kernel) settle(tx *db.Tx, w *worker, h *held, o Outcome) error {
	more := false
	if o.decide != nil {
		decide := o.decide
		if err := safely(func() (err error) { o, err = decide(tx); return err }); err != nil {
			return err
		}
	}
	if o.record != nil {
		var err error
		if err = safely(func() error { more, err = o.record(tx); return err }); err != nil {
			return err
		}
	}
	now := k.now(tx)
	a := moveArgs{State: Waits, DueAt: db.Micros(now), SetAt: db.Micros(now), Tries: h.Tries}
	if o.err != nil {
		a.Why = reason(o.err)
	}
	switch o.kind {
	case done:
		a.State, a.Tries = Ready, 0
	case waits:
		a.Now = db.Micros(now)
		if a.DueAt, a.Tries = db.Micros(now.Add(o.after)), -1; !o.at.IsZero() {
			a.DueAt, a.SetAt = db.Micros(o.at), 0
		}
	case again:
		var wait time.Duration
		if asked, is := errors.AsType[RetryAfter](o.err); is {
			wait = asked.RetryAfter()
		}
		a.DueAt = db.Micros(now.Add(w.retry.wait(int(h.Tries), wait)))
	}
	if o.kind == failed || o.kind == again && w.retry.Tries > 0 && int(h.Tries) >= w.retry.Tries {
		a.State = Aside
		if w.giveUp != nil {
			if err := safely(func() error { return w.giveUp(tx, h.Key, a.Why) }); err != nil {
				return fmt.Errorf("give it up: %w", err)
			}
			o.kind, a.State, a.Tries, a.Why = done, Ready, 0, ""
		}
	}
	if o.kind != done || more {
		k.move(tx, w, h, a)
		return nil
	}
	changes.Add(tx, change{w.name, h.Key, 0, func(tx *db.Tx) error {
		k.point("recording")
		n, err := end.Exec(tx, w.name, h.Key, h.fence)
		if err != nil || n == 1 {
			return err
		}
		return k.moveNow(tx, w, h, a) // it was added meanwhile
	}})
	return nil
}

// move gives an entry another state at the end of tx.
func (k *Kernel) move(tx *db.Tx, w *worker, h *held, a moveArgs) {
	changes.Add(tx, change{w.name, h.Key, 0, func(tx *db.Tx) error {
		k.point("recording")
		return k.moveNow(tx, w, h, a)
	}})
}

func (k *Kernel) moveNow(tx *db.Tx, w *worker, h *held, a moveArgs) error {
	a.Queue, a.Key, a.Fence = w.name, h.Key, h.fence
	had, err := move(tx, a)
	if err == nil && !had {
		err = ErrLost
	}
	if err != nil {
		return err
	}
	switch a.State {
	case Aside:
		tx.AfterCommit(func() {
			k.Logger.Error("set aside", slog.String("queue", w.name), slog.String("key", h.Key), slog.String("why", a.Why))
		})
	case Ready:
		k.notify(tx)
	case Waits:
		tx.AfterCommit(k.Wake) // for the time of the next look
	}
	return nil
}

// renewIn renews the hold of an entry at the end of tx, see Job.Renew.
func (k *Kernel) renewIn(tx *db.Tx, w *worker, h *held) {
	changes.Add(tx, change{w.name, h.Key, 0, func(tx *db.Tx) error {
		now := k.now(tx)
		had, err := renew(tx, w.name, h.Key, h.fence, db.Micros(now.Add(w.hold)), db.Micros(now))
		if err == nil && !had {
			err = ErrLost
		}
		return err
	}})
}

// keep renews the hold of an entry until job ends. It ends the job if another node has the
// entry, or if the hold has run out before it could be renewed.
func (k *Kernel) keep(job context.Context, cancel context.CancelCauseFunc, w *worker, h *held) {
	until := h.until
	wait := time.NewTimer(w.hold / 3)
	defer wait.Stop()
	for {
		select {
		case <-job.Done():
			return
		case <-wait.C:
		}
		sent := time.Now() // the hold counts from here: the answer may come late
		call, stop := context.WithDeadline(job, until)
		had := false
		err := k.DB.Write(call, func(tx *db.Tx) (err error) {
			now := k.now(tx)
			had, err = renew(tx, w.name, h.Key, h.fence, db.Micros(now.Add(w.hold)), db.Micros(now))
			return err
		})
		stop()
		k.point("renewed")
		switch {
		case job.Err() != nil:
			return
		case err == nil && had:
			until = sent.Add(w.hold)
		case err == nil, time.Now().After(until):
			cancel(ErrLost)
			return
		}
		wait.Reset(w.hold / 3)
	}
}
