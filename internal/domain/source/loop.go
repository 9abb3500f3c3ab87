package source

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	sweepEvery = time.Minute
	tidyUp     = time.Hour
)

// Loop notes refused deliveries and forgets what is old until ctx ends. Several nodes may
// run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	var tidied time.Time
	s.Hub.Sweep(ctx, "sources.sweep", event.SourceTopic, sweepEvery, func(ctx context.Context) {
		var now time.Time
		err := s.DB.Read(ctx, func(tx *db.Tx) error { now = tx.Now; return nil })
		if err == nil {
			err = s.sweep(ctx)
		}
		if err == nil && now.Sub(tidied) >= tidyUp {
			tidied = now
			err = s.forget(ctx)
		}
		if observe.Failed(ctx, err); err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "tidy up sources", slog.Any("error", err))
		}
	})
	return nil
}

// sweep notes which sources were sent what was not signed, and drops secrets whose overlap
// has ended.
func (s *Service) sweep(ctx context.Context) error {
	seen := s.refused.take()
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		for sourceID := range seen {
			if _, err := noteRefused.Exec(tx, sourceID, tx.Micros()); err != nil {
				return err
			}
		}
		over, err := rotated.All(tx, tx.Micros())
		if err != nil {
			return err
		}
		for _, r := range over {
			all, err := s.open(r)
			if err != nil {
				return err
			}
			all.Previous = ""
			sealed, err := s.seal(r.ID, all)
			if err != nil {
				return err
			}
			if _, err := setSecrets.Exec(tx, setSecretsArgs{ID: r.ID, Sealed: sealed}); err != nil {
				return err
			}
		}
		return nil
	})
}

// forget removes old deliveries, and old ids and hashes.
func (s *Service) forget(ctx context.Context) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := forgetDeliveries.Exec(tx, db.Micros(tx.Now.Add(-kept))); err != nil {
			return err
		}
		_, err := forgetSeen.Exec(tx, db.Micros(tx.Now.Add(-remembered)))
		return err
	})
}
