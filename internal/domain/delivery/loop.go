package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	sweepEvery = 5 * time.Second
	hold       = 2 * time.Minute // for which a node has a delivery
	atOnce     = 8
	maxTries   = 12 // about half an hour
	kept       = 30 * 24 * time.Hour
	longest    = 5 * time.Minute // from one try to the next
)

// Loop applies deliveries, and looks for those that were lost, until ctx ends. Several
// nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.started(ctx)
	var sweeping sync.WaitGroup
	sweeping.Go(func() { s.Hub.Sweep(ctx, "deliveries.lost", lostTopic, lookEvery, s.Look) })
	defer sweeping.Wait()
	var tidy db.Hourly
	s.Hub.Sweep(ctx, "deliveries.sweep", event.DeliveryTopic, sweepEvery, func(ctx context.Context) {
		s.Pass(ctx)
		err := tidy.Do(ctx, s.DB, func(tx *db.Tx) error {
			_, err := forget.Exec(tx, db.Micros(tx.Now.Add(-s.Keep)))
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "tidy up", err)
		}
	})
	return nil
}

// Pass applies the deliveries that are due.
func (s *Service) Pass(ctx context.Context) {
	err := db.Drain(ctx, s.DB, anyDue, takeDue, func(d row) {
		if err := s.apply(ctx, d); err != nil {
			observe.Complain(ctx, s.Logger, "apply a delivery", err, slog.String("guid", d.GUID), slog.String("kind", d.Kind))
		}
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "take the deliveries that are due", err)
	}
}

func takeDue(tx *db.Tx) ([]row, error) {
	return take.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)), atOnce)
}

// apply applies one delivery. After maxTries it has failed, until somebody replays it.
func (s *Service) apply(ctx context.Context, d row) error {
	state, failure := s.tell(ctx, d)
	if ctx.Err() != nil {
		return nil // a node takes the delivery again after the hold
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if failure != nil && d.Tries < maxTries {
			after := min(time.Second<<min(d.Tries-1, 20), longest)
			if busy, is := errors.AsType[*codehost.BusyError](failure); is {
				after = max(after, busy.After)
			}
			_, err := again.Exec(tx, againArgs{
				Host: d.Host, GUID: d.GUID, Tries: d.Tries, DueAt: db.Micros(tx.Now.Add(after)), Error: text(failure),
			})
			return err
		}
		var why *string
		if failure != nil {
			state, why = Failed, new(text(failure))
		}
		_, err := end.Exec(tx, endArgs{Host: d.Host, GUID: d.GUID, Tries: d.Tries, State: state, Error: why, Now: tx.Micros()})
		return err
	})
	return errors.Join(failure, err)
}

// tell has the receiver apply what a delivery tells.
func (s *Service) tell(ctx context.Context, d row) (state string, err error) {
	feed, ok := s.Hosts.Feeds()[d.Host]
	if !ok {
		return "", fmt.Errorf("%w %q", codehost.ErrUnknownHost, d.Host)
	}
	body, err := unpack(d.Body)
	if err != nil {
		return "", err
	}
	events, err := feed.Events(codehost.Delivery{Host: d.Host, GUID: d.GUID, Kind: d.Kind, Body: body})
	if err != nil {
		return "", err
	}
	for _, e := range events {
		if err := s.Receiver.Apply(ctx, d.Host, e); err != nil {
			return "", fmt.Errorf("%T: %w", e, err)
		}
	}
	if len(events) == 0 {
		return Ignored, nil
	}
	return Applied, nil
}

// text is the text of an error that is stored with a delivery.
func text(err error) string {
	const most = 500
	t := err.Error()
	return t[:min(len(t), most)]
}
