package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/observe"
)

// Cadences of the search for what was not delivered. A repository is asked about every
// swept; a host is asked to send failed deliveries again every redeliverEvery, those of
// the last redeliverSince (GitHub redelivers for 3 days).
const (
	lostTopic      = "deliveries.lost"
	lookEvery      = 15 * time.Second
	swept          = 10 * time.Minute
	redeliverEvery = 10 * time.Minute
	redeliverSince = 70 * time.Hour
	sweepBatch     = 50
)

// Watch has a repository of a host that sends deliveries swept from now on.
func Watch(tx *db.Tx, repoID string) error {
	_, err := watch.Exec(tx, repoID, tx.Micros())
	return err
}

// Look asks the hosts what has changed in the repositories that are due, and applies
// what they answer.
func (s *Service) Look(ctx context.Context) {
	ctx = codehost.WithUrgency(ctx, codehost.ForSweeps)
	feeds := s.Hosts.Feeds()
	if len(feeds) == 0 {
		return
	}
	for name, feed := range feeds {
		s.redeliver(ctx, name, feed)
	}
	for ctx.Err() == nil {
		due, err := s.takeSweeps(ctx)
		if err != nil {
			observe.Complain(ctx, s.Logger, "take the repositories that are due", err)
		}
		if err != nil || len(due) == 0 {
			return
		}
		for _, d := range due {
			if err := s.sweep(ctx, d); err != nil {
				observe.Complain(ctx, s.Logger, "sweep a repository", err, slog.String("repo", d.RepoID))
			}
		}
	}
}

func (s *Service) takeSweeps(ctx context.Context) ([]sweepRow, error) {
	return db.Claim(ctx, s.DB, anySweep, func(tx *db.Tx) ([]sweepRow, error) {
		return takeSweeps.All(tx, tx.Micros(), db.Micros(tx.Now.Add(swept)), sweepBatch)
	})
}

// sweep asks a host what has changed in one repository. Of an open pull request that has
// changed, what people say is to be read: what was said there since the last sweep may not
// have been delivered. The event says so by the time of that sweep.
func (s *Service) sweep(ctx context.Context, d sweepRow) error {
	var r repo.Ref
	wanted := false
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, wanted, err = repo.Reachable(tx, d.RepoID)
		return err
	})
	if err != nil || !wanted {
		return err
	}
	at := r.HostRepo()
	feed, ok := s.Hosts.Feeds()[at.Host]
	if !ok {
		return nil
	}
	var marks codehost.Marks
	if err := json.Unmarshal([]byte(d.Marks), &marks); err != nil {
		return err
	}
	seen, events, err := feed.Changed(ctx, at, marks)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range events { // one that cannot be applied keeps no other from it
		failed = append(failed, s.Receiver.Apply(ctx, at.Host, e))
		if p, is := e.(codehost.PullChanged); is && p.Pull.Open && !marks.Since.IsZero() {
			said := codehost.ThreadChanged{Happening: codehost.Happening{Repo: p.Repo, At: marks.Since}, Number: p.Pull.Number}
			failed = append(failed, s.Receiver.Apply(ctx, at.Host, said))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	text, err := json.Marshal(seen)
	if err != nil || string(text) == d.Marks {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := setMarks.Exec(tx, d.RepoID, string(text))
		return err
	})
}

// started has the hosts asked at once for the deliveries that failed while this node was
// down.
func (s *Service) started(ctx context.Context) {
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := pullRedeliver.Exec(tx, tx.Micros(), tx.Micros())
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "have deliveries sent again", err)
	}
}

// redeliver asks a host to send failed deliveries again, on one node at a time.
func (s *Service) redeliver(ctx context.Context, host string, feed codehost.Feed) {
	mine := false
	var since time.Time
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		free, err := redeliverFree.One(tx, host, tx.Micros())
		mine = free
		return err
	})
	if err == nil && mine {
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			n, err := takeRedeliver.Exec(tx, host, tx.Micros(), db.Micros(tx.Now.Add(redeliverEvery)))
			mine, since = n > 0, tx.Now.Add(-redeliverSince)
			return err
		})
	}
	if err == nil && mine {
		var asked int
		if asked, err = feed.Redeliver(ctx, since); asked > 0 {
			s.Logger.InfoContext(ctx, "asked a code host to send deliveries again",
				slog.String("host", host), slog.Int("deliveries", asked))
		}
	}
	if err != nil {
		observe.Complain(ctx, s.Logger, "have deliveries sent again", err, slog.String("host", host))
	}
}
