package tracker

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/linear"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	kept     = 180 * 24 * time.Hour // of issues that are over
	maxError = 500                  // bytes
)

// ladder has an issue tried again, see final.
var ladder = due.Ladder{First: time.Second, Longest: longest}

// wanted is an issue at the time when it was looked at.
type wanted struct {
	issueRow
	at time.Time
}

func load(tx *db.Tx, key string) (w wanted, ok bool, err error) {
	w.at = tx.Now
	w.issueRow, ok, err = openByID.Maybe(tx, key)
	return w, ok, err
}

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// Loop forgets issues that are over until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "trackers.tidy", "trackers.tidy", time.Hour, func(ctx context.Context) {
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := forget.Exec(tx, db.Micros(tx.Now.Add(-kept)))
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "tidy up", err)
		}
	})
	return nil
}

// errGone says that the account has disconnected Linear.
var errGone = errors.New("the account has disconnected Linear")

// carry tries to open one issue.
func (s *Service) carry(ctx context.Context, j due.Job[wanted]) due.Outcome {
	i := j.Row
	made, connection, failure := s.create(ctx, i.issueRow, i.Tries > 0 || j.Tries > 1)
	if failure == nil {
		return due.Done(func(tx *db.Tx) error {
			n, err := end.Exec(tx, endArgs{ID: i.ID, State: Opened, Identifier: &made.Identifier, URL: &made.URL, Now: tx.Micros()})
			if err != nil || n == 0 {
				return err
			}
			if err := noteKey(tx, connection, nil); err != nil {
				return err
			}
			return openedEvent.Record(tx, event.Subject{ID: i.ID, RepoID: i.RepoID}, openedData{Identifier: made.Identifier, URL: made.URL})
		})
	}
	why := failure.Error()
	why = why[:min(len(why), maxError)]
	var after time.Duration
	if busy, ok := errors.AsType[*linear.BusyError](failure); ok {
		after = busy.After
	}
	badKey := errors.Is(failure, linear.ErrKey)
	if badKey {
		after = longest // or until another key is given, see retryNow
	}
	refusesKey := func(tx *db.Tx) error {
		if !badKey {
			return nil
		}
		return noteKey(tx, connection, &why)
	}
	_, refused := errors.AsType[*linear.RefusedError](failure)
	if !refused && !errors.Is(failure, errGone) && !final(i, j.Tries, after) {
		return due.Again(due.Later(failure, after)).With(func(tx *db.Tx) error {
			_, err := noteTry.Exec(tx, i.ID, why)
			return errors.Join(err, refusesKey(tx))
		})
	}
	return due.Done(func(tx *db.Tx) error {
		n, err := end.Exec(tx, endArgs{ID: i.ID, State: Failed, Error: &why, Now: tx.Micros()})
		if err != nil || n == 0 {
			return err
		}
		if err := refusesKey(tx); err != nil {
			return err
		}
		if err := GivenUp.Send(tx, Failure{RepoID: i.RepoID, Title: i.Title, Why: why}); err != nil {
			return err
		}
		return failedEvent.Record(tx, event.Subject{ID: i.ID, RepoID: i.RepoID}, failedData{Reason: why})
	})
}

// final tells whether the try after one that has failed would come too late.
func final(i wanted, tries int, after time.Duration) bool {
	return i.at.Add(max(after, ladder.After(tries))).Sub(i.CreatedAt) > giveUp
}

// retryNow has the issues of tx.Account that wait after a failure tried at once.
func (s *Service) retryNow(tx *db.Tx) error {
	all, err := failing.All(tx, tx.Account)
	for _, issueID := range all {
		s.queue.Hurry(tx, issueID)
	}
	return err
}

// noteKey notes why Linear refuses the key of a connection, or that it does not.
func noteKey(tx *db.Tx, was row, why *string) error {
	if was.Error == nil && why == nil {
		return nil
	}
	_, err := setError.Exec(tx, tx.Account, was.Sealed, why)
	return err
}

// create opens an issue at Linear, unless an earlier try, if there was one, did whose answer was
// lost.
func (s *Service) create(ctx context.Context, i issueRow, again bool) (made linear.Issue, connection row, err error) {
	ok := false
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		connection, ok, err = byAccount.Maybe(tx, tx.Account)
		return err
	})
	if err == nil && !ok {
		err = errGone
	}
	if err != nil {
		return made, connection, err
	}
	key, err := s.unseal(connection)
	if err != nil {
		return made, connection, err
	}
	if again {
		made, there, err := s.Linear.Find(ctx, key, i.ID)
		if err != nil || there {
			return made, connection, err
		}
	}
	made, err = s.Linear.Create(ctx, key, linear.Draft{ID: i.ID, TeamID: connection.TeamID, Title: i.Title, Description: i.Body})
	if _, refused := errors.AsType[*linear.RefusedError](err); refused {
		// Another node may have opened it at this moment, and Linear takes an id once.
		if found, there, lost := s.Linear.Find(ctx, key, i.ID); lost == nil && there {
			return found, connection, nil
		}
	}
	return made, connection, err
}
