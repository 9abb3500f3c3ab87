package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	hold     = 2 * time.Minute // for which a node has a delivery
	atOnce   = 8
	maxTries = 12 // about half an hour
	kept     = 30 * 24 * time.Hour
	longest  = 5 * time.Minute // from one try to the next
)

// Loop looks for deliveries that were lost, and forgets old ones, until ctx ends. Several
// nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.started(ctx)
	var tidy db.Hourly
	s.Hub.Sweep(ctx, "deliveries.lost", lostTopic, lookEvery, func(ctx context.Context) {
		s.Look(ctx)
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

// key is that of a delivery in the queue. No name of a host has a slash.
func key(host, guid string) string { return host + "/" + guid }

func load(tx *db.Tx, key string) (row, bool, error) {
	host, guid, _ := strings.Cut(key, "/")
	return stored.Maybe(tx, host, guid)
}

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// apply applies one delivery. After maxTries it has failed, until somebody replays it.
func (s *Service) apply(ctx context.Context, j due.Job[row]) due.Outcome {
	d := j.Row
	state, err := s.tell(ctx, d)
	if err != nil {
		observe.Complain(ctx, s.Logger, "apply a delivery", err, slog.String("guid", d.GUID), slog.String("kind", d.Kind))
		return due.Again(err).With(func(tx *db.Tx) error {
			_, err := note.Exec(tx, noteArgs{Host: d.Host, GUID: d.GUID, Tries: int64(j.Tries), Error: text(err)})
			return err
		})
	}
	return due.Done(func(tx *db.Tx) error {
		_, err := end.Exec(tx, endArgs{Host: d.Host, GUID: d.GUID, State: state, Tries: int64(j.Tries), Now: tx.Micros()})
		return err
	})
}

// giveUp ends a delivery that could not be applied.
func (s *Service) giveUp(tx *db.Tx, key, why string) error {
	host, guid, _ := strings.Cut(key, "/")
	at, _, err := s.queue.State(tx, key)
	if err != nil {
		return err
	}
	_, err = end.Exec(tx, endArgs{Host: host, GUID: guid, State: Failed, Error: &why, Tries: at.Tries, Now: tx.Micros()})
	return err
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
	return strings.ToValidUTF8(t[:min(len(t), most)], "")
}
