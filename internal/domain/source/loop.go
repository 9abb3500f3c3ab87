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

const sweepEvery = time.Minute

// Loop notes refused deliveries and forgets what is old until ctx ends. Several nodes may
// run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	var tidy db.Hourly
	s.Hub.Sweep(ctx, "sources.sweep", event.SourceTopic, sweepEvery, func(ctx context.Context) {
		err := s.sweep(ctx)
		if err == nil {
			err = tidy.Do(ctx, s.DB, s.forget)
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
func (s *Service) forget(tx *db.Tx) error {
	if _, err := forgetDeliveries.Exec(tx, db.Micros(tx.Now.Add(-s.Keep))); err != nil {
		return err
	}
	_, err := forgetSeen.Exec(tx, db.Micros(tx.Now.Add(-remembered)))
	return err
}
