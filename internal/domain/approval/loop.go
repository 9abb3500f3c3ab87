package approval

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
)

const (
	topic = "approvals.mails"
	// sweep is short, for mails wait for the trial of a merge, which takes a moment.
	sweep = 3 * time.Second
	// mailHold is how long a node has a mail to itself, which is longer than to read a
	// change takes.
	mailHold = 2 * time.Minute
	// longestWait is the longest pause between two tries.
	longestWait = 10 * time.Minute
	// atOnce is how many mails a node takes in one transaction.
	atOnce = 10
	// lookFor is how often a mail waits for the trial of the merge, which tells what is
	// protected: without it the question would be asked twice.
	lookFor = 6
	// withoutChange is the number of the try from which a mail does without the list of
	// files.
	withoutChange = 4
	// keepLinks is how long expired links are kept, so that they can say so.
	keepLinks = 30 * 24 * time.Hour
)

// Ask orders the mails about a question of tx.Account, once.
func (s *Service) Ask(tx *db.Tx, actionID string) error {
	_, err := insertMail.Exec(tx, actionID, tx.Account, tx.Now)
	s.Hub.Notify(tx, topic)
	return err
}

// Loop writes the mails that are due until ctx ends. Several nodes may run Loop at once.
// A failure is logged, and the mail is tried again.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "approvals.mails", topic, sweep, s.Pass)
	return nil
}

// Pass writes the mails that are due, and forgets links that expired long ago.
func (s *Service) Pass(ctx context.Context) {
	for ctx.Err() == nil {
		due, err := s.take(ctx)
		if err != nil {
			observe.Complain(ctx, s.Logger, "take due mails about questions", err)
		}
		for _, m := range due {
			if err := s.write(db.WithAccount(ctx, m.AccountID), m); err != nil {
				observe.Complain(ctx, s.Logger, "write a mail about a question", err, slog.String("question", m.ActionID))
			}
		}
		if len(due) < atOnce {
			return
		}
	}
}

// take takes mails that are due. No other node takes them for the time of mailHold.
func (s *Service) take(ctx context.Context) ([]mailRow, error) {
	return db.Claim(ctx, s.DB, anyMail, func(tx *db.Tx) ([]mailRow, error) {
		if _, err := forgetLinks.Exec(tx, tx.Now.Add(-keepLinks)); err != nil {
			return nil, err
		}
		return takeMails.All(tx, tx.Now, tx.Now.Add(mailHold), atOnce)
	})
}

// putOff has a mail tried again, later each time.
func (s *Service) putOff(ctx context.Context, m mailRow) error {
	wait := longestWait
	if m.Tries < 10 {
		wait = min(wait, time.Second<<m.Tries)
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := putOffMail.Exec(tx, m.ActionID, m.Tries, tx.Now.Add(wait))
		return err
	})
}
