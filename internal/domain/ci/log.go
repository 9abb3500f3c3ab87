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
	"yardmaster/internal/db/due"
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
	// longestWait is the longest pause between two tries to store a log.
	longestWait = time.Hour
	// logType is the media type of an archived output.
	logType = "text/plain; charset=utf-8"
	// logCut ends an output that was longer than mostLog.
	logCut = "\n[the rest is cut off]\n"
)

// archiving has a log that could not be stored or deleted tried again.
var archiving = due.Ladder{First: 20 * time.Second, Longest: longestWait}

// logRow is the log of a run of a check.
type logRow struct {
	ID        string
	AccountID string
	RunID     string
	KeptAt    *time.Time
	ExpiresAt time.Time
}

// dueLog is a log at the time when it was looked at.
type dueLog struct {
	logRow
	at time.Time
}

func loadLog(tx *db.Tx, key string) (l dueLog, ok bool, err error) {
	l.at = tx.Now
	l.logRow, ok, err = logByID.Maybe(tx, key)
	return l, ok, err
}

// key is the key of the log's object.
func (l logRow) key() string { return l.AccountID + "/ci/" + l.ID + ".log" }

// archive orders the archive of the output of a run of tx.Account.
func (s *Service) archive(tx *db.Tx, runID string) error {
	l := insertLogArgs{ID: id.New(), AccountID: tx.Account, RunID: runID, ExpiresAt: tx.Now.Add(Retention)}
	n, err := insertLog.Exec(tx, l)
	if n > 0 {
		s.logQueue.Add(tx, l.ID, due.Entry{Account: tx.Account})
	}
	return err
}

// look stores the output of a log, or deletes it if its time is over.
func (s *Service) look(ctx context.Context, j due.Job[dueLog]) due.Outcome {
	l := j.Row
	forget := due.Done(func(tx *db.Tx) error {
		_, err := deleteLog.Exec(tx, l.ID)
		return err
	})
	failed := func(err error) due.Outcome {
		observe.Complain(ctx, s.Logger, "archive the log of a check", err, slog.String("log", l.ID), slog.String("run", l.RunID))
		return due.Again(err)
	}
	rest := l.ExpiresAt.Sub(l.at)
	if rest <= 0 {
		// Without an object there may be one all the same: the node that stored it may
		// have ended before it could say so.
		switch err := s.Objects.Delete(ctx, l.key()); {
		case errors.Is(err, blob.ErrHeld):
			return due.Wait(archiving.First)
		case err != nil:
			return failed(err)
		}
		return forget
	}
	if l.KeptAt != nil {
		return due.Wait(rest)
	}
	size, err := s.store(ctx, l.logRow)
	switch {
	case errors.Is(err, blob.ErrOff):
		return forget
	case err != nil:
		return failed(err)
	}
	return due.Wait(rest).With(func(tx *db.Tx) error {
		_, err := keptLog.Exec(tx, l.ID, size, tx.Now)
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
