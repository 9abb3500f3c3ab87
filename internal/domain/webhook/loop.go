package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/hook"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	scan   = 15 * time.Second // from one look at what is due to the next
	batch  = 64               // deliveries that a node takes of a webhook
	atOnce = 8                // attempts at a webhook
	// lease is how long a node has a batch. Each of its attempts may take hook.Patience.
	lease = batch/atOnce*hook.Patience + 30*time.Second
	// gather is how long the outcomes of attempts are collected for one transaction.
	gather = 10 * time.Millisecond
	kept   = 30 * 24 * time.Hour // events and deliveries
)

// working are the webhooks at which this node works. Each has a goroutine of its own, so
// that one that does not answer delays no other.
type working struct {
	mu    sync.Mutex
	hooks map[string]bool // whether there is more to do than when the work began
	all   sync.WaitGroup
}

// begin runs fn for a webhook in a goroutine. If this node works at it already, fn runs
// once more after that.
func (w *working) begin(hookID string, fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, busy := w.hooks[hookID]; busy {
		w.hooks[hookID] = true
		return
	}
	if w.hooks == nil {
		w.hooks = map[string]bool{}
	}
	w.hooks[hookID] = false
	w.all.Go(func() {
		for more := true; more; {
			fn()
			more = w.next(hookID)
		}
	})
}

// next tells whether there is more to do at a webhook; if not, its work is over.
func (w *working) next(hookID string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := w.hooks[hookID]
	if w.hooks[hookID] = false; !more {
		delete(w.hooks, hookID)
	}
	return more
}

// Loop makes the attempts that are due until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	defer s.working.all.Wait()
	var tidy db.Hourly
	running := ctx // work outlives the pass that begins it
	s.Hub.Sweep(ctx, "webhooks.sweep", event.WebhookTopic, scan, func(ctx context.Context) {
		s.pass(ctx, running)
		err := tidy.Do(ctx, s.DB, s.forget)
		if err != nil {
			observe.Complain(ctx, s.Logger, "tidy up", err)
		}
	})
	return nil
}

// forget removes old deliveries, and the events that no delivery is of.
func (s *Service) forget(tx *db.Tx) error {
	before := db.Micros(tx.Now.Add(-s.Keep))
	if _, err := forgetDeliveries.Exec(tx, before); err != nil {
		return err
	}
	_, err := forgetEvents.Exec(tx, before)
	return err
}

// pass begins to work, until running ends, at each webhook for which something is due.
func (s *Service) pass(ctx, running context.Context) {
	var hooks []hookDue
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		hooks, err = hooksDue.All(tx, tx.Micros())
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "read which webhooks are due", err)
	}
	for _, h := range hooks {
		s.working.begin(h.ID, func() {
			if err := s.work(db.WithAccount(running, h.AccountID), h.ID); err != nil {
				observe.Complain(running, s.Logger, "send to a webhook", err, slog.String("id", h.ID))
			}
		})
	}
}

// Gone makes due what processes had that are gone, by their Needs.Process.
func Gone(tx *db.Tx, hub *event.Hub, processes []string) error {
	n, err := gone(tx, processes)
	if err == nil && n > 0 {
		hub.Notify(tx, event.WebhookTopic)
	}
	return err
}

// Restarted makes due what the process had that was here before, while no other runs.
func Restarted(tx *db.Tx) error {
	_, err := restarted.Exec(tx, tx.Micros())
	return err
}

// job is a delivery that is attempted now, with what is sent.
type job struct {
	delivery
	event eventRow
}

// done is an attempt that was made.
type done struct {
	job
	hook.Outcome
}

// work sends what is due to one webhook, batch by batch. After a batch of which nothing
// was answered, the next is tried one by one. What came of a batch is recorded while the
// next one is sent.
func (s *Service) work(ctx context.Context, hookID string) error {
	records, recorded := make(chan []done, 2), make(chan error, 1)
	go func() {
		var failed error
		for all := range records {
			if err := s.record(context.WithoutCancel(ctx), hookID, all); err != nil {
				failed = err // the lease ends, and the attempt is made again
			}
		}
		recorded <- failed
	}()
	held, err := s.batches(ctx, hookID, records)
	close(records)
	if err = errors.Join(err, <-recorded); ctx.Err() == nil || held == 0 {
		return err
	}
	// The node stops: the next one need not wait for the lease.
	return s.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		_, err := release.Exec(tx, hookID, held, tx.Micros())
		return err
	})
}

// batches sends batch by batch, and passes on what came of each. It answers the end of the
// lease of the last one.
func (s *Service) batches(ctx context.Context, hookID string, records chan<- []done) (held int64, err error) {
	for width := atOnce; ctx.Err() == nil; {
		to, format, jobs, err := s.take(ctx, hookID, width)
		if err != nil || len(jobs) == 0 {
			return held, err
		}
		held = jobs[0].DueAt
		answered := s.attemptAll(ctx, to, format, jobs, width, records)
		if width = atOnce; !answered {
			width = 1
		}
	}
	return held, nil
}

// take keeps deliveries of a webhook from other nodes. It takes as many as the lease
// leaves time for.
func (s *Service) take(ctx context.Context, hookID string, width int) (to hook.Target, format hook.Format, jobs []job, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		to, format, jobs = hook.Target{}, "", nil
		h, ok, err := byID.Maybe(tx, tx.Account, hookID)
		if err != nil || !ok || h.DeletedAt != nil {
			return err
		}
		if h.UserID != nil { // somebody who has left is told nothing more
			if hears, err := people.Hears(tx, *h.UserID); err != nil {
				return err
			} else if !hears {
				_, err = dropAll.Exec(tx, h.ID)
				return err
			}
		}
		due, err := take.All(tx, takeArgs{
			HookID: hookID, Holder: s.Process, Now: tx.Micros(), Lease: db.Micros(tx.Now.Add(lease)), Most: width * (batch / atOnce),
		})
		if err != nil || len(due) == 0 {
			return err
		}
		events, err := leased.All(tx, hookID, due[0].DueAt)
		if err != nil {
			return err
		}
		bodies := map[string]eventRow{}
		for _, e := range events {
			bodies[e.ID] = e
		}
		for _, d := range due {
			jobs = append(jobs, job{d, bodies[d.EventID]})
		}
		format = h.Format
		text, err := s.Ring.Unseal(purpose(h.ID), h.Sealed)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &to)
	})
	return to, format, jobs, err
}

// attemptAll makes the attempts of a batch, some at once, and passes on what came of them in
// groups, each of which is recorded in a transaction. It tells whether any was answered.
func (s *Service) attemptAll(
	ctx context.Context, to hook.Target, format hook.Format, jobs []job, width int, records chan<- []done,
) (answered bool) {
	waiting, results := make(chan job, len(jobs)), make(chan done, len(jobs))
	for _, j := range jobs {
		waiting <- j
	}
	close(waiting)
	var senders sync.WaitGroup
	for range min(width, len(jobs)) {
		senders.Go(func() {
			for j := range waiting {
				d := done{job: j}
				if body, err := sent(format, j.event); err != nil {
					d.Why = "The event cannot be shown in this format."
				} else {
					d.Outcome = s.Sender.Send(ctx, to, body)
				}
				if ctx.Err() == nil || d.Status > 0 {
					results <- d
				}
			}
		})
	}
	go func() {
		senders.Wait()
		close(results)
	}()
	for first := range results {
		all := append(make([]done, 0, len(jobs)), first)
		gathered := time.NewTimer(gather)
		for more := true; more; {
			select {
			case d, open := <-results:
				if more = open; open {
					all = append(all, d)
				}
			case <-gathered.C:
				more = false
			}
		}
		gathered.Stop()
		for _, d := range all {
			answered = answered || d.Status > 0
		}
		records <- all
	}
	return answered
}

// record stores attempts. A delivery that another node has taken meanwhile is left to it.
func (s *Service) record(ctx context.Context, hookID string, all []done) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		h, ok, err := byID.Maybe(tx, tx.Account, hookID)
		if err != nil || !ok || h.DeletedAt != nil {
			return err
		}
		exhausted, attempted, succeeded := "", false, false
		var noted []attemptRow
		for _, d := range all {
			a := attemptRow{
				ID: id.New(), AccountID: tx.Account, HookID: hookID, EventID: d.EventID, DeliveryID: d.ID, Type: d.event.Type,
				Attempt: d.Tries + 1, State: OK, Excerpt: d.Excerpt, Took: d.Took.Microseconds(), At: tx.Now,
			}
			if d.Status > 0 {
				status := int64(d.Status)
				a.ResponseStatus = &status
			}
			m := movedArgs{ID: d.ID, Tries: d.Tries + 1, Lease: d.DueAt}
			if !d.OK() {
				why := d.Why
				a.Error = &why
				a.State, a.NextAt = next(h, d.Tries+1, tx.Now)
			}
			if m.State = a.State; a.NextAt != nil {
				at := db.Micros(*a.NextAt)
				m.DueAt = &at
			}
			n, err := moved.Exec(tx, m)
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			if h.UserID == nil { // the ledger is the account's
				noted = append(noted, a)
			}
			attempted, succeeded = true, succeeded || a.State == OK
			if a.State != Retrying {
				if err := tellOf(tx, d.event, a.State, d.Why); err != nil {
					return err
				}
			}
			if a.State == Exhausted {
				exhausted = d.EventID
			}
		}
		if attempted {
			if err := turned(tx, h, succeeded); err != nil {
				return err
			}
		}
		// Of a large group the ledger keeps the last: what would be dropped again is not written.
		if err := s.note(tx, noted[max(0, len(noted)-maxLedger):]...); err != nil || exhausted == "" {
			return err
		}
		return s.unhealthy(tx, h, exhausted)
	})
}

// turned records whether attempts at a webhook succeed, where that has changed.
func turned(tx *db.Tx, h row, succeeded bool) error {
	var err error
	switch {
	case succeeded && h.FailingAt != nil:
		_, err = succeeding.Exec(tx, h.ID)
	case !succeeded && h.FailingAt == nil:
		_, err = failing.Exec(tx, h.ID, tx.Micros())
	}
	return err
}

// next is the state of a delivery after a failed attempt, and when it is tried again. A
// webhook that is not healthy is tried once, for a test.
func next(h row, attempt int64, now time.Time) (state string, at *time.Time) {
	if h.UnhealthyAt != nil || attempt > int64(len(ladder)) {
		return Exhausted, nil
	}
	due := now.Add(ladder[attempt-1])
	return Retrying, &due
}

// unhealthy marks a webhook at which a delivery has used up its attempts. What else was
// on its way there is not sent any more.
func (s *Service) unhealthy(tx *db.Tx, h row, eventID string) error {
	n, err := mark.Exec(tx, h.ID, tx.Micros())
	if err != nil || n == 0 {
		return err
	}
	if err := drop(tx, h.ID, "The webhook is not healthy any more, so nothing was sent."); err != nil {
		return err
	}
	name, err := nameOf(tx, h)
	if err != nil {
		return err
	}
	return UnhealthyEvent.Record(tx, event.Subject{ID: h.ID}, unhealthyData{EventID: eventID, Name: name, UserID: h.UserID})
}

// nameOf is what a webhook is called in the audit record. That of a person has no name of its
// own.
func nameOf(tx *db.Tx, h row) (string, error) {
	if h.UserID == nil {
		return h.Name, nil
	}
	login, _, ok, err := people.Names(tx, *h.UserID, tx.Account)
	if err != nil || !ok {
		return "of a person", err
	}
	return "of " + login, nil
}
