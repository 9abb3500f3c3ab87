package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

// Judge opens sessions with the model behind triage.
type Judge interface {
	// Begin opens a session about an ask. It returns a fault if the account has
	// no model.
	Begin(ctx context.Context, m Matter) (Talk, error)
}

// Matter describes the session of a judge.
type Matter struct {
	AccountID   string
	RepoID      string // empty: the ask is not about one repository alone
	RequestedBy string // the person for whom the session spends; empty: nobody
	// Before is the session of the try before, which is ended: its node may
	// have died. Empty: there was none.
	Before string
}

// Talk is one conversation with a judge.
type Talk interface {
	// ID returns the id of the session, to which the talk's spend is booked.
	ID() string
	// Say sends the prompts and the answers so far, in turns, and returns the
	// next answer.
	Say(ctx context.Context, system string, turns []string) (string, error)
	// End closes the session.
	End(ctx context.Context, outcome string)
}

// The numbers and times of judging.
const (
	// AtOnce is how many asks a node has judged at the same time.
	AtOnce = 4
	// hold is how long an ask is a node's unless it renews.
	hold = 30 * time.Second
	// callTime limits one call of the judge.
	callTime = 100 * time.Second
	// maxCalls is how many calls the judge has for one verdict.
	maxCalls = 3
	// maxTries is how often an ask is taken up before a person is asked.
	maxTries = 4
	// backoff is the wait before the second try. It grows fourfold with each.
	backoff = 15 * time.Second
	// longestWait is the longest wait for the next try, unless the provider wishes more.
	longestWait = 30 * time.Minute
	// queueWait is the wait for a full queue.
	queueWait = 30 * time.Second
)

// The slugs of the faults of calls that a limit of the account does not allow.
const (
	budgetExhausted = "budget_exhausted"
	unpricedModel   = "unpriced_model"
)

// errDecided says that the ask does not wait for a judge any more.
var errDecided = errors.New("ask: it was decided meanwhile")

// Turn says whether an ask waits for a judge.
type Turn struct {
	AskID string
	Waits bool
}

// TurnChanged is sent when an ask is given to triage, or taken from it.
var TurnChanged = event.DeclareSignal[Turn]("ask.turn_changed", "An ask waits for a judge, or does not any more.")

// FollowTurn has an ask judged that waits for it, and none other.
func (s *Service) FollowTurn(tx *db.Tx, t Turn) error {
	if t.Waits {
		s.queue.Add(tx, t.AskID, due.Entry{Account: tx.Account})
	} else {
		s.queue.Drop(tx, t.AskID)
	}
	return nil
}

func load(tx *db.Tx, askID string) (row, bool, error) {
	r, ok, err := byID.Maybe(tx, tx.Account, askID)
	return r, ok && r.State == Pending, err
}

func openAsks(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// lockPending locks an ask of tx.Account that waits for a judge; else it fails with errDecided.
func lockPending(tx *db.Tx, askID string) (r row, err error) {
	if _, _, err = lockID.Maybe(tx, tx.Account, askID); err != nil {
		return r, err
	}
	r, ok, err := load(tx, askID)
	if err == nil && !ok {
		err = errDecided
	}
	return r, err
}

// free returns how many more asks this process could have judged now.
func (s *Service) free() int64 {
	if !s.running.Load() {
		return 0
	}
	return AtOnce - s.busy.Load()
}

// Loop wakes the asks that wait for room in the queue of their account, until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.mu.Lock()
	s.life = ctx
	s.mu.Unlock()
	s.running.Store(true)
	<-ctx.Done()
	s.running.Store(false)
	s.mu.Lock()
	s.life = nil
	s.mu.Unlock()
	s.workers.Wait()
	return nil
}

func (s *Service) logError(ctx context.Context, what string, err error) {
	observe.Failed(ctx, err)
	if ctx.Err() == nil {
		s.Logger.ErrorContext(ctx, what, "error", err)
	}
}

// judge has one ask judged and carries out the verdict.
func (s *Service) judge(ctx context.Context, j due.Job[row]) due.Outcome {
	s.busy.Add(1)
	defer s.busy.Add(-1)
	o, err := s.triage(ctx, j)
	switch {
	case err == nil:
		return o
	case errors.Is(err, errDecided):
		return due.Done(nil)
	}
	s.logError(ctx, "judge ask "+j.Key, err)
	return due.Again(err)
}

func (s *Service) triage(ctx context.Context, j due.Job[row]) (o due.Outcome, err error) {
	r := j.Row
	var system, prompt string
	var full bool
	var stops []Stop
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if full, err = s.Queue.Full(tx); err != nil || full {
			return err
		}
		if r.SessionID != nil { // a limit may still stop its judge
			if stops, err = s.stops(tx, []string{*r.SessionID}); err != nil {
				return err
			}
		}
		system, prompt, err = s.brief(tx, &r)
		return err
	})
	switch {
	case err != nil:
		return o, err
	case full:
		s.awaitRoom(r.AccountID, r.ID)
		return due.Wait(queueWait), nil
	case len(stops) > 0:
		return due.Wait(stopped), nil
	}
	talk, err := s.Judge.Begin(ctx, Matter{AccountID: r.AccountID, RepoID: deref(r.RepoID), RequestedBy: deref(r.RequestedBy),
		Before: deref(r.SessionID)})
	if err != nil {
		return s.unanswered(ctx, j, deref(r.SessionID), err), nil
	}
	o, outcome, err := s.converse(ctx, j, talk, system, prompt)
	talk.End(context.WithoutCancel(ctx), outcome)
	return o, err
}

// converse calls the judge until a verdict was carried out, maxCalls times at most. It returns
// the outcome of the session, too.
func (s *Service) converse(ctx context.Context, j due.Job[row], talk Talk, system, prompt string) (
	o due.Outcome, outcome string, err error,
) {
	turns := []string{prompt}
	var wrong refusal
	read := false // whether the last answer could be read
	for range maxCalls {
		if err := s.noteSession(ctx, j, talk.ID()); err != nil {
			return o, "lost", err
		}
		answer, err := func() (string, error) {
			ctx, cancel := context.WithTimeout(ctx, callTime)
			defer cancel()
			return talk.Say(ctx, system, turns)
		}()
		if err != nil {
			return s.unanswered(ctx, j, talk.ID(), err), "failed", nil
		}
		v, err := parse(answer)
		if read = err == nil; read {
			err = s.settle(ctx, j, &v)
		}
		if err == nil {
			return due.Done(nil), "succeeded", nil
		}
		switch f := fault.From(err); {
		case errors.Is(err, errDecided), errors.Is(err, due.ErrLost):
			return o, "lost", err
		case f.Slug == "queue-full":
			return due.Wait(max(f.RetryAfter, queueWait)), "succeeded", nil
		case f.Slug == "no-capacity":
			return handToPerson(j.Key, NoCapacity, "The judge would have work done, but the account has no AI developers."), "succeeded", nil
		}
		var ok bool
		if wrong, ok = refusalOf(err); !ok {
			return o, "failed", err // an error of ours: the ask is taken up again
		}
		turns = append(turns, clip(answer, maxProblem), correction(wrong))
	}
	last := "The last answer of the model was not of the form that was asked for." // what a parser says is for the judge
	if read {
		last = "The last was refused: " + wrong.Error()
	}
	return handToPerson(j.Key, JudgeInvalid, fmt.Sprintf("No verdict could be carried out in %d tries. %s", maxCalls, last)), "failed", nil
}

// settle carries out a verdict, if the ask is still this node's. What is refused of it is told to
// the judge, so it is not left to the transaction that ends the entry.
func (s *Service) settle(ctx context.Context, j due.Job[row], v *verdict) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		j.Renew(tx)
		r, err := lockPending(tx, j.Key)
		if err != nil {
			return err
		}
		return s.carryOut(tx, &r, v)
	})
}

// noteSession notes the session that judges an ask, before each call.
func (s *Service) noteSession(ctx context.Context, j due.Job[row], session string) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		j.Renew(tx)
		_, err := setSession.Exec(tx, tx.Account, j.Key, session)
		return err
	})
}

// handToPerson escalates an ask.
func handToPerson(askID, category, reason string) due.Outcome {
	return due.Done(func(tx *db.Tx) error { return toPerson(tx, askID, category, reason) })
}

func toPerson(tx *db.Tx, askID, category, reason string) error {
	r, err := lockPending(tx, askID)
	switch {
	case errors.Is(err, errDecided):
		return nil
	case err != nil:
		return err
	}
	return escalate(tx, &r, category, reason)
}

// giveUp asks a person about an ask of which nodes die, or that fails for reasons of ours.
func giveUp(tx *db.Tx, askID, _ string) error {
	return toPerson(tx, askID, JudgeUnavailable,
		fmt.Sprintf("The ask was taken up %d times, and each time something kept the judge from an answer.", maxTries))
}

// unanswered decides what follows a call without an answer. A failure that may
// pass is tried again; any other, and one that has not passed after maxTries,
// becomes a question to a person.
func (s *Service) unanswered(ctx context.Context, j due.Job[row], session string, cause error) due.Outcome {
	if ctx.Err() != nil { // this node stops, or has lost it: another may begin at once
		return due.Again(ctx.Err())
	}
	f := fault.From(cause)
	if f.Kind == fault.PaymentRequired && (f.Slug == budgetExhausted || f.Slug == unpricedModel) {
		return s.park(j.Row, session, f.Slug)
	}
	passing := f.Kind == fault.Internal || f.Kind == fault.Unavailable || f.Kind == fault.RateLimited ||
		errors.Is(cause, context.DeadlineExceeded)
	if f.Kind == fault.Internal {
		s.logError(ctx, "ask the judge", cause)
	}
	if passing && j.Tries < maxTries {
		return due.Again(due.Later(f, f.RetryAfter))
	}
	why := "The model gave no answer in time."
	if f.Kind != fault.Internal {
		why = f.Detail
	}
	return handToPerson(j.Key, JudgeUnavailable, "No judge answered. "+why)
}
