package intent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

const (
	sweep   = 5 * time.Second
	atOnce  = 8                   // intents that one node carries out at the same time
	kept    = 14 * 24 * time.Hour // of intents that have ended
	longMsg = 500                 // bytes of an error that are stored
)

// Ops lists the capabilities of this package: none.
func (*Service) Ops() []op.Op { return nil }

// Loop carries out intents until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	var tidy db.Hourly
	s.Hub.Sweep(ctx, "intents.sweep", event.IntentTopic, sweep, func(ctx context.Context) {
		s.Pass(ctx)
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

// Pass carries out the intents that are due.
func (s *Service) Pass(ctx context.Context) {
	err := db.Drain(ctx, s.DB, anyDue, func(tx *db.Tx) ([]row, error) {
		return take.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)), atOnce)
	}, func(w row) {
		if err := s.carry(db.WithAccount(ctx, w.AccountID), w); err != nil {
			observe.Complain(ctx, s.Logger, "carry out an intent", err, slog.String("id", w.ID), slog.String("kind", w.Kind))
		}
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "take the intents that are due", err)
	}
}

// urgencies are those of calls to the host, by the rank of the intent.
var urgencies = map[int64]codehost.Urgency{
	ForPeople: codehost.ForPeople, ForRuns: codehost.ForRuns, ForReviews: codehost.ForReviews, ForRecord: codehost.ForSweeps,
}

// carry carries one intent out, and hands over its outcome.
func (s *Service) carry(ctx context.Context, w row) error {
	k, ok := s.kinds[w.Kind]
	if !ok {
		return s.finish(ctx, w, Failed, errors.New("no handler"), nil)
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
		return err
	}
	if !wanted {
		return s.finish(ctx, w, Dropped, nil, nil)
	}
	var answer any
	forge, failure := s.Hosts.Forge(r.HostRepo())
	if failure == nil {
		call, cancel := context.WithTimeout(codehost.WithUrgency(ctx, urgencies[w.Rank]), callTime)
		answer, failure = k.do(call, forge, w, r)
		cancel()
	}
	if ctx.Err() != nil {
		return nil // a node takes the intent again after the hold
	}
	done := func(tx *db.Tx) error { return k.done(tx, w, r, answer, failure) }
	if failure == nil {
		return s.finish(ctx, w, Done, nil, done)
	}
	return s.failed(ctx, w, failure, done)
}

// failed has an intent carried out again, or ends it.
func (s *Service) failed(ctx context.Context, w row, failure error, done func(*db.Tx) error) error {
	s.Logger.WarnContext(ctx, "a code host did not carry out an intent", slog.String("id", w.ID), slog.String("kind", w.Kind),
		slog.Any("error", failure))
	final := false
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		after, limited, end := next(w, tx.Now, failure)
		if final = end; final {
			return nil
		}
		if ungranted(failure) {
			if err := s.ask(tx, w, failure); err != nil {
				return err
			}
		}
		_, err := again.Exec(tx, againArgs{
			ID: w.ID, Tries: w.Tries, DueAt: db.Micros(tx.Now.Add(after)), Limited: limited, Error: short(failure),
		})
		return err
	})
	if err != nil || !final {
		return err
	}
	return s.finish(ctx, w, Failed, failure, func(tx *db.Tx) error {
		if err := done(tx); err != nil {
			return err
		}
		if ungranted(failure) {
			return nil // a person was asked at the first try
		}
		return s.giveUp(tx, w, failure)
	})
}

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

// finish ends an intent, and hands over its outcome in the same transaction.
func (s *Service) finish(ctx context.Context, w row, state string, failure error, done func(*db.Tx) error) error {
	var text *string
	if failure != nil {
		text = new(short(failure))
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := end.Exec(tx, endArgs{ID: w.ID, Tries: w.Tries, Now: tx.Micros(), State: state, Error: text})
		if err != nil || n == 0 || done == nil {
			return err // n == 0: another node has it
		}
		s.Hub.Notify(tx, event.IntentTopic) // the next one of the line
		return done(tx)
	})
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
