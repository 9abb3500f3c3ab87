package approval

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/observe"
)

const (
	// longestWait is the longest pause between two tries.
	longestWait = 10 * time.Minute
	// lookFor is how often a mail waits for the trial of the merge, which tells what is
	// protected: without it the question would be asked twice.
	lookFor = 6
	// withoutChange is the number of the try from which a mail does without the list of
	// files.
	withoutChange = 4
	// keepLinks is how long expired links are kept, so that they can say so.
	keepLinks = 30 * 24 * time.Hour
	tidyEvery = time.Hour
)

// errUnseen says that the trial of the merge has not ended yet.
var errUnseen = errors.New("approval: it is not known yet what is protected")

// Ask orders the mails about a question of tx.Account, once.
func (s *Service) Ask(tx *db.Tx, actionID string) error {
	n, err := insertMail.Exec(tx, actionID, tx.Account)
	if n > 0 {
		s.queue.Add(tx, actionID, due.Entry{Account: tx.Account})
	}
	return err
}

// Tried has the mails about a question written, if they wait for the trial of its merge.
func (s *Service) Tried(tx *db.Tx, actionID string) error {
	s.queue.Hurry(tx, actionID)
	return nil
}

// Loop forgets links that expired long ago until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "approvals.tidy", "approvals.tidy", tidyEvery, s.tidy)
	return nil
}

func (s *Service) tidy(ctx context.Context) {
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := forgetLinks.Exec(tx, tx.Now.Add(-keepLinks))
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "forget links", err)
	}
}

func open(tx *db.Tx, most int) ([]due.Open, error) { return openMails.All(tx, most) }

// write writes the mails about a question, or has them wait.
func (s *Service) write(ctx context.Context, j due.Job[string]) due.Outcome {
	record, err := s.mails(ctx, j.Key, j.Tries)
	switch {
	case err == nil:
		return due.Done(func(tx *db.Tx) error {
			if _, err := doneMail.Exec(tx, j.Key); err != nil || record == nil {
				return err
			}
			return record(tx)
		})
	case !errors.Is(err, errUnseen):
		observe.Complain(ctx, s.Logger, "write a mail about a question", err, slog.String("question", j.Key))
	}
	return due.Again(err)
}
