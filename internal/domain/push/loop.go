package push

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
	"yardmaster/internal/webpush"
)

const (
	scan   = 15 * time.Second
	atOnce = 16
	lease  = webpush.Patience + time.Minute
)

// Loop sends what is due until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "push.sweep", topic, scan, s.Pass)
	return nil
}

// Pass sends what is due now.
func (s *Service) Pass(ctx context.Context) {
	err := db.Drain(ctx, s.DB, anyDue, func(tx *db.Tx) ([]messageRow, error) {
		return take.All(tx, tx.Micros(), db.Micros(tx.Now.Add(lease)), atOnce)
	}, func(m messageRow) {
		if err := s.send(ctx, m); err != nil {
			observe.Complain(ctx, s.Logger, "send a message to a browser", err, slog.String("id", m.ID))
		}
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "take the messages that are due", err)
	}
}

// send makes one attempt, and records what came of it. A message that took the place of
// this one meanwhile stays. One for somebody who has left the account since, or was
// suspended, is dropped.
func (s *Service) send(ctx context.Context, m messageRow) error {
	var to subscriptionRow
	var known, hears bool
	ctx = db.WithAccount(ctx, m.AccountID)
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if to, known, err = byID.Maybe(tx, tx.Account, m.SubscriptionID); err != nil || !known {
			return err
		}
		hears, err = people.Hears(tx, to.UserID)
		return err
	})
	if err != nil || !known { // forgotten meanwhile, with what was on its way
		return err
	}
	if !hears {
		return s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := done.Exec(tx, m.ID, m.Tries)
			return err
		})
	}
	where, err := s.Ring.Unseal(purpose(to.ID), to.Sealed)
	if err != nil {
		return err
	}
	body, err := s.Ring.Unseal(purposeOf(to.ID, m.Topic), m.Sealed)
	if err != nil {
		return err
	}
	var sub webpush.Subscription
	if err := json.Unmarshal(where, &sub); err != nil {
		return err
	}
	out := s.Sender.Send(ctx, sub, webpush.Message{Body: body, Topic: m.Topic, Urgent: m.Urgent, Life: life})
	if ctx.Err() != nil && !out.Sent {
		return nil // a node takes the message again after the lease
	}
	return s.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		old := tx.Now.Sub(time.UnixMicro(m.CreatedAt)) >= life
		switch {
		case out.Gone:
			s.Logger.InfoContext(ctx, "a browser takes no more messages", slog.String("service", to.Service))
			return remove(tx, to.ID)
		case out.Sent:
			_, err := done.Exec(tx, m.ID, m.Tries)
			_, err2 := setSent.Exec(tx, to.ID, tx.Micros())
			return errors.Join(err, err2)
		case out.Never || old:
			s.Logger.WarnContext(ctx, "a message to a browser was not sent",
				slog.String("service", to.Service), slog.String("why", out.Why))
			_, err := done.Exec(tx, m.ID, m.Tries)
			return err
		}
		wait := max(out.After, ladder[min(m.Tries, int64(len(ladder)))-1])
		_, err := again.Exec(tx, m.ID, m.Tries, db.Micros(tx.Now.Add(wait)))
		return err
	})
}
