package intent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// Limits of an intent. One that the host has not answered for noAnswer has failed.
const (
	atOnce    = 8 // intents that one node carries out at the same time
	callTime  = 60 * time.Second
	noAnswer  = 24 * time.Hour
	first     = 2 * time.Second
	longest   = 15 * time.Minute
	tidyEvery = 5 * time.Minute     // how often Loop looks whether an hour is over
	kept      = 14 * 24 * time.Hour // of intents that have ended
	longMsg   = 500                 // bytes of an error that are stored
	// longestLimited is what may be added to the time that a limit takes.
	longestLimited = time.Minute
)

// Ops lists the capabilities of this package: none.
func (*Service) Ops() []op.Op { return nil }

// Loop forgets intents that have ended long ago, until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	var tidy db.Hourly
	observe.Every(ctx, "intents.tidy", tidyEvery, func(ctx context.Context) {
		err := tidy.Do(ctx, s.DB, func(tx *db.Tx) error {
			_, err := forget.Exec(tx, db.Micros(tx.Now.Add(-kept)))
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "tidy up", err)
		}
	})
	return nil
}

// urgencies are those of calls to the host, by the rank of the intent.
var urgencies = map[int64]codehost.Urgency{
	ForPeople: codehost.ForPeople, ForRuns: codehost.ForRuns, ForReviews: codehost.ForReviews, ForRecord: codehost.ForSweeps,
}

// carry carries the head of a line out, and hands over its outcome.
func (s *Service) carry(ctx context.Context, j due.Job[row]) due.Outcome {
	w := j.Row
	k, ok := s.kinds[w.Kind]
	if !ok {
		return unknownKind(w)
	}
	var r repo.Ref
	wanted := false
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		var there bool
		if r, there, err = repo.ByID(tx, w.RepoID); err != nil || !there {
			return err
		}
		wanted, err = k.still(tx, w, r)
		return err
	})
	if err != nil {
		return due.Again(err)
	}
	if !wanted {
		return ended(w, Dropped, nil, nil)
	}
	var answer any
	forge, failure := s.Hosts.Forge(r.HostRepo())
	if failure == nil {
		call, cancel := context.WithTimeout(codehost.WithUrgency(ctx, urgencies[w.Rank]), callTime)
		answer, failure = k.do(call, forge, w, r)
		cancel()
	}
	if ctx.Err() != nil {
		return due.Again(ctx.Err()) // another node carries the intent out once more
	}
	done := func(tx *db.Tx) error { return k.done(tx, w, r, answer, failure) }
	if failure == nil {
		return ended(w, Done, nil, done)
	}
	s.Logger.WarnContext(ctx, "a code host did not carry out an intent", slog.String("id", w.ID), slog.String("kind", w.Kind),
		slog.Any("error", failure))
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) { return s.failed(tx, j, failure, done), nil })
}

var errNoHandler = errors.New("no handler")

// unknownKind leaves an intent of a newer release to a node of that release, for a day.
func unknownKind(w row) due.Outcome {
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		if tx.Now.Sub(w.CreatedAt) < 24*time.Hour {
			return due.Wait(time.Minute), nil
		}
		return ended(w, Failed, errNoHandler, nil), nil
	})
}

// failed has an intent carried out again, or ends it.
func (s *Service) failed(tx *db.Tx, j due.Job[row], failure error, done func(*db.Tx) error) due.Outcome {
	w := j.Row
	after, limited, final := next(j.Tries, tx.Now.Sub(w.CreatedAt), failure)
	if final {
		return ended(w, Failed, failure, func(tx *db.Tx) error {
			if err := done(tx); err != nil || ungranted(failure) { // a person was asked at the first try
				return err
			}
			return s.giveUp(tx, w, failure)
		})
	}
	a := againArgs{ID: w.ID, Tries: int64(j.Tries), Error: short(failure)}
	if limited {
		a.LimitedUntil = new(db.Micros(tx.Now.Add(after)))
	}
	return due.Again(due.Later(failure, after)).With(func(tx *db.Tx) error {
		if ungranted(failure) {
			if err := s.ask(tx, w, failure); err != nil {
				return err
			}
		}
		_, err := again.Exec(tx, a)
		return err
	})
}

// next is the time to the next try of an intent that was put so long ago; final tells that there
// is none.
func next(tries int, since time.Duration, err error) (after time.Duration, limited, final bool) {
	after = due.Ladder{First: first, Longest: longest}.After(tries)
	busy, again := errors.AsType[*codehost.BusyError](err)
	switch {
	case again && busy.Limit: // the host says when it ends, so tries are not spread far
		after, limited = max(min(after, longestLimited), busy.After), true
	case again:
		after = max(after, busy.After)
	case errors.Is(err, codehost.ErrGone), errors.Is(err, codehost.ErrUnknownHost):
		after = longest // the host may let the server in again
	case ungranted(err):
		after = longest // or until it is granted, see RetryNow
	default:
		return 0, false, true
	}
	return after, limited, since+after > noAnswer
}

// Trouble is an intent that has failed for a reason which only a person can mend.
type Trouble struct {
	RepoID, Kind, Object string
	Permission           string // that the host demands; "" for other reasons
	Asked                bool   // the App asks for the permission, and its owner has not granted it yet
	Why                  string
}

// GivenUp is sent when an intent has failed because the server may not do it, or
// because the host did not answer.
var GivenUp = event.DeclareSignal[Trouble]("intent.given_up", "A code host did not let the server do what it wanted.")

// giveUp tells that only a person can mend the reason of a failure.
func (s *Service) giveUp(tx *db.Tx, w row, failure error) error {
	forbidden, is := errors.AsType[*codehost.ForbiddenError](failure)
	_, busy := errors.AsType[*codehost.BusyError](failure)
	t := Trouble{RepoID: w.RepoID, Kind: w.Kind, Object: w.Object}
	switch {
	case is:
		t.Permission, t.Asked = forbidden.Permission, forbidden.Asked
		t.Why = "The App lacks a permission."
	case busy:
		t.Why = "The code host has not answered for a day."
	case errors.Is(failure, codehost.ErrGone), errors.Is(failure, codehost.ErrUnknownHost):
		t.Why = "The code host has not let the server in for a day."
	default:
		return nil
	}
	return GivenUp.Send(tx, t)
}

// ended ends an intent, and hands over its outcome in the same transaction. Then the next one of
// the line is carried out.
func ended(w row, state string, failure error, done func(*db.Tx) error) due.Outcome {
	return due.Next(func(tx *db.Tx) (more bool, err error) {
		if err := endRow(tx, w, state, failure, done); err != nil {
			return false, err
		}
		return Waits(tx, w.RepoID, w.Object)
	})
}

func endRow(tx *db.Tx, w row, state string, failure error, done func(*db.Tx) error) error {
	var text *string
	if failure != nil {
		text = new(short(failure))
	}
	n, err := end.Exec(tx, endArgs{ID: w.ID, Now: tx.Micros(), State: state, Error: text})
	if err != nil || n == 0 || done == nil {
		return err
	}
	return done(tx)
}

// abandon ends the head of a line of which nodes have died, and has the rest carried out.
func (s *Service) abandon(tx *db.Tx, key, why string) error {
	w, there, err := load(tx, key)
	if err != nil || !there {
		return err
	}
	r, known, err := repo.ByID(tx, w.RepoID)
	if err != nil {
		return err
	}
	failure := errors.New(why)
	var done func(*db.Tx) error
	if k, ok := s.kinds[w.Kind]; ok && known {
		done = func(tx *db.Tx) error { return k.done(tx, w, r, nil, failure) }
	}
	if err := endRow(tx, w, Failed, failure, done); err != nil {
		return err
	}
	more, err := Waits(tx, w.RepoID, w.Object)
	if err == nil && more {
		s.queue.Add(tx, key, due.Entry{Account: w.AccountID, Rank: int(w.Rank)})
	}
	return err
}

// short is the text of an error that is stored with an intent.
func short(err error) string {
	text := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok {
		text = f.Detail
	}
	if len(text) > longMsg {
		text = text[:longMsg]
	}
	return text
}
