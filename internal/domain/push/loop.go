package push

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/observe"
	"yardmaster/internal/webpush"
)

// ladder has a message tried again until it is a day old: after ten seconds, a minute, and
// later every two hours.
var ladder = due.Ladder{First: 10 * time.Second, Factor: 6, Longest: 2 * time.Hour}

// errLeft says that nobody is there any more who is to read a message.
var errLeft = errors.New("push: the person has left the account")

// queued is a message with the browser that it is for.
type queued struct {
	messageRow
	to  subscriptionRow
	old bool // it is not tried again
}

// key is that of a message in the queue. No id has a slash.
func key(subscriptionID, topic string) string { return subscriptionID + "/" + topic }

func load(tx *db.Tx, key string) (q queued, ok bool, err error) {
	subscription, topic, _ := strings.Cut(key, "/")
	if q.messageRow, ok, err = message.Maybe(tx, subscription, topic); err != nil || !ok {
		return q, ok, err
	}
	q.old = tx.Now.Sub(time.UnixMicro(q.CreatedAt)) >= life
	q.to, ok, err = byID.Maybe(tx, q.AccountID, q.SubscriptionID)
	return q, ok, err
}

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// send makes one attempt. A message that took the place of this one meanwhile stays. One for
// somebody who has left the account since, or was suspended, is dropped.
func (s *Service) send(ctx context.Context, j due.Job[queued]) due.Outcome {
	m := j.Row
	out, err := s.try(ctx, m)
	drop := func(tx *db.Tx) error {
		_, err := done.Exec(tx, m.ID)
		return err
	}
	switch {
	case errors.Is(err, errLeft):
		return due.Done(drop)
	case err != nil:
		observe.Complain(ctx, s.Logger, "send a message to a browser", err, slog.String("id", m.ID))
		return due.Again(err)
	case out.Gone:
		s.Logger.InfoContext(ctx, "a browser takes no more messages", slog.String("service", m.to.Service))
		return due.Done(func(tx *db.Tx) error { return s.remove(tx, m.to.ID) })
	case out.Sent:
		return due.Done(func(tx *db.Tx) error {
			_, err := setSent.Exec(tx, m.to.ID, tx.Micros())
			return errors.Join(drop(tx), err)
		})
	case ctx.Err() == nil && (out.Never || m.old):
		s.Logger.WarnContext(ctx, "a message to a browser was not sent",
			slog.String("service", m.to.Service), slog.String("why", out.Why))
		return due.Done(drop)
	}
	return due.Again(due.Later(errors.New(out.Why), out.After))
}

// try hands a message to the service of its browser, unless its person has left.
func (s *Service) try(ctx context.Context, m queued) (out webpush.Outcome, err error) {
	hears := false
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		hears, err = people.Hears(tx, m.to.UserID)
		return err
	})
	if err == nil && !hears {
		err = errLeft
	}
	if err != nil {
		return out, err
	}
	where, err := s.Ring.Unseal(purpose(m.to.ID), m.to.Sealed)
	if err != nil {
		return out, err
	}
	body, err := s.Ring.Unseal(purposeOf(m.to.ID, m.Topic), m.Sealed)
	if err != nil {
		return out, err
	}
	var sub webpush.Subscription
	if err := json.Unmarshal(where, &sub); err != nil {
		return out, err
	}
	return s.Sender.Send(ctx, sub, webpush.Message{Body: body, Topic: m.Topic, Urgent: m.Urgent, Life: life}), nil
}
