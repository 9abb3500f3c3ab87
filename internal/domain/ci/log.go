package ci

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

// The archive of outputs. A run of a check delivers its output as events while it goes
// on, scrubbed by its box and at most 8 MiB. When the check ends, the archive puts them
// together into one object.
const (
	// Retention is how long the output of a check is kept after its end.
	Retention = 3 * 24 * time.Hour
	// mostLog is the size of the largest object, in bytes.
	mostLog = 16 << 20
	// archiveHold is how long a node has a log to itself. It is longer than to store
	// or to delete an object takes.
	archiveHold = 5 * time.Minute
	// atOnce is how many logs a node takes in one transaction.
	atOnce = 10
	// longestWait is the longest pause between two tries to store a log.
	longestWait = time.Hour
	// logType is the media type of an archived output.
	logType = "text/plain; charset=utf-8"
	// logCut ends an output that was longer than mostLog.
	logCut = "\n[the rest is cut off]\n"

	archiveTopic = "ci.logs"
)

// logRow is the log of a run of a check.
type logRow struct {
	ID        string
	AccountID string
	RunID     string
	Tries     int
	ExpiresAt time.Time
}

// key is the key of the log's object.
func (l logRow) key() string { return l.AccountID + "/ci/" + l.ID + ".log" }

// archive orders the archive of the output of a run of tx.Account.
func (s *Service) archive(tx *db.Tx, runID string) error {
	_, err := insertLog.Exec(tx, insertLogArgs{
		ID: id.New(), AccountID: tx.Account, RunID: runID, DueAt: tx.Now, ExpiresAt: tx.Now.Add(Retention),
	})
	s.Hub.Notify(tx, archiveTopic)
	return err
}

// PassLogs stores the outputs that are due, and deletes those whose time is over. A
// failure for one does not keep PassLogs from the others; the log is tried again.
func (s *Service) PassLogs(ctx context.Context) {
	for ctx.Err() == nil {
		var due []logRow
		var at time.Time
		err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
			at = tx.Now
			due, err = takeLogs.All(tx, tx.Micros(), db.Micros(tx.Now.Add(archiveHold)), atOnce)
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "take due logs of checks", err)
		}
		for _, l := range due {
			if err := s.look(db.WithAccount(ctx, l.AccountID), l, at); err != nil {
				observe.Complain(ctx, s.Logger, "archive the log of a check", err, slog.String("log", l.ID), slog.String("run", l.RunID))
			}
		}
		if len(due) < atOnce {
			return
		}
	}
}

// look stores the output of a log, or deletes it if its time is over at the given time.
func (s *Service) look(ctx context.Context, l logRow, at time.Time) error {
	if !at.Before(l.ExpiresAt) {
		// Without an object there may be one all the same: the node that stored it may
		// have ended before it could say so.
		if err := s.Objects.Delete(ctx, l.key()); err != nil {
			return err
		}
		return s.forget(ctx, l)
	}
	size, err := s.store(ctx, l)
	switch {
	case errors.Is(err, blob.ErrOff):
		return s.forget(ctx, l)
	case err != nil:
		wait := longestWait
		if l.Tries < 10 {
			wait = min(wait, 10*time.Second<<l.Tries)
		}
		return errors.Join(err, s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := putOffLog.Exec(tx, l.ID, l.Tries, tx.Now.Add(wait))
			return err
		}))
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := keptLog.Exec(tx, l.ID, size, tx.Now)
		return err
	})
}

func (s *Service) forget(ctx context.Context, l logRow) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := deleteLog.Exec(tx, l.ID)
		return err
	})
}

// store puts the events of a run together into an object, and answers its size in bytes.
func (s *Service) store(ctx context.Context, l logRow) (size int64, err error) {
	var all bytes.Buffer
	for after, end := int64(0), false; !end; {
		var text string
		err := s.DB.Read(ctx, func(tx *db.Tx) error {
			var next int64
			text, next, err = s.Logs.Output(tx, l.RunID, after)
			after, end = next, next == after
			return err
		})
		if err != nil {
			return 0, err
		}
		if room := mostLog - len(logCut) - all.Len(); len(text) > room {
			all.WriteString(strings.ToValidUTF8(text[:room], "") + logCut)
			break
		}
		all.WriteString(text)
	}
	size = int64(all.Len())
	return size, s.Objects.Put(ctx, l.key(), &all, size, logType)
}
