package logsink

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/llm/sink"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

// Loop sends copies until ctx ends, and then tries once to send what waits. Every node runs
// it.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	running := ctx // a sender outlives the pass that begins it
	s.Hub.Sweep(ctx, "log-sinks.sweep", event.LogSinkTopic, scan, func(ctx context.Context) {
		if err := s.refresh(ctx, running); err != nil {
			observe.Complain(ctx, s.Logger, "read which accounts have a log sink", err)
		}
	})
	s.all.Wait()
	return nil
}

// refresh begins to send for accounts that have a sink, until running ends, ends it for those
// that have none any more, and stores the counts of all.
func (s *Service) refresh(ctx, running context.Context) error {
	var have []string
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		have, err = accounts.All(tx)
		return err
	})
	if err != nil {
		return err
	}
	stay := make(map[string]*queue, len(have))
	s.mu.Lock()
	for _, account := range have {
		k := s.sinks[account]
		if k == nil {
			k = newQueue(account)
			in, end := context.WithCancel(db.WithAccount(running, account))
			k.end = end
			s.all.Go(func() { s.send(in, k) })
		}
		delete(s.sinks, account)
		stay[account] = k
	}
	gone := s.sinks
	s.sinks = stay
	s.mu.Unlock()
	for _, k := range gone {
		k.close()
		k.end()
	}
	for _, k := range stay {
		s.note(db.WithAccount(ctx, k.account), k)
	}
	return nil
}

// send sends what waits at a sink, batch by batch, until ctx ends.
func (s *Service) send(ctx context.Context, k *queue) {
	defer s.leave(ctx, k)
	var noted time.Time
	var due <-chan time.Time // when counts are stored that were not
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
			due = nil
			s.note(ctx, k)
			continue
		case <-k.some:
		}
		gathered := time.NewTimer(gather)
		select {
		case <-ctx.Done():
		case <-k.full:
		case <-gathered.C:
		}
		gathered.Stop()
		for batch := k.take(); len(batch) > 0; batch = k.take() {
			if ctx.Err() != nil {
				k.put(batch)
				return
			}
			out := s.deliver(ctx, k, batch)
			if ctx.Err() != nil && out.Why != "" {
				k.put(batch)
				return
			}
			k.settle(batch, out, s.Clock())
			if now := s.Clock(); now.Sub(noted) >= counting {
				noted = now
				s.note(ctx, k)
			} else if due == nil {
				due = time.After(counting)
			}
		}
	}
}

// put puts a batch back, to be sent when the node stops.
func (k *queue) put(batch []*record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range batch {
		if k.over {
			r.free()
			k.dropped++
		}
		k.queued += r.occupied
	}
	if k.over {
		return
	}
	k.waiting = append(batch, k.waiting...)
}

// leave tries once to send what waits when the node stops, and stores the counts.
func (s *Service) leave(ctx context.Context, k *queue) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	for batch := k.take(); len(batch) > 0; batch = k.take() {
		k.settle(batch, s.attempt(ctx, k, batch), s.Clock())
		if ctx.Err() != nil {
			break
		}
	}
	k.close()
	s.note(ctx, k)
}

// deliver sends a batch, in several tries, and returns what came of the last one.
func (s *Service) deliver(ctx context.Context, k *queue, batch []*record) sink.Outcome {
	for try := 1; ; try++ {
		out := s.attempt(ctx, k, batch)
		if out.Why == "" || !out.Again || try == tries {
			return out
		}
		select {
		case <-ctx.Done():
			return out
		case <-s.pause(try):
		}
	}
}

// attempt sends a batch once, to what the account has set now and without the secrets that it
// has now.
func (s *Service) attempt(ctx context.Context, k *queue, batch []*record) sink.Outcome {
	var to sink.Target
	var secrets []string
	var there bool
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := byAccount.Maybe(tx, k.account)
		if there = ok; err != nil || !ok {
			return err
		}
		text, err := s.Ring.Unseal(purpose(k.account), r.Sealed)
		if err != nil {
			return fmt.Errorf("open the log sink: %w", err)
		}
		if err := json.Unmarshal(text, &to); err != nil {
			return err
		}
		secrets, err = s.Secrets.Secrets(tx)
		return err
	})
	switch {
	case err != nil:
		observe.Complain(ctx, s.Logger, "read what must not leave with model calls", err, slog.String("account", k.account))
		return sink.Outcome{Why: "The server could not read the secrets that it takes out, so nothing was sent.", Again: true}
	case !there:
		return sink.Outcome{Why: "The account has no log sink any more."}
	}
	return s.sender.Send(ctx, to, s.form(k, batch, append(secrets, to.Secrets()...)))
}

// form writes a batch down without secrets.
func (s *Service) form(k *queue, batch []*record, secrets []string) []sink.Call {
	s.forming.Lock()
	defer s.forming.Unlock()
	made := make([]*sink.Made, len(batch))
	for i, r := range batch {
		made[i] = &r.Made
	}
	clean := k.known.Learn(secrets, made)
	calls := make([]sink.Call, len(batch))
	for i, m := range made {
		calls[i] = sink.Form(m, clean)
	}
	return calls
}

// note stores the counts of a sink.
func (s *Service) note(ctx context.Context, k *queue) {
	k.mu.Lock()
	n := k.tally
	k.tally = tally{}
	k.mu.Unlock()
	if n == (tally{}) {
		return
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := count.Exec(tx, countArgs{AccountID: k.account, Sent: n.sent, Dropped: n.dropped, Failed: n.failed}); err != nil {
			return err
		}
		if !n.told {
			return nil
		}
		if n.sent > 0 {
			if _, err := took.Exec(tx, k.account, n.at); err != nil {
				return err
			}
		}
		if n.why == "" {
			return nil
		}
		_, err := refused.Exec(tx, k.account, n.why)
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "count the calls of a log sink", err, slog.String("account", k.account))
		k.mu.Lock()
		k.sent, k.dropped, k.failed = k.sent+n.sent, k.dropped+n.dropped, k.failed+n.failed
		k.mu.Unlock()
	}
}
