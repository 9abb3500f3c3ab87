package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
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
	// hold is how long an ask is a node's. After a crash another node takes it
	// then. It is renewed before each call.
	hold = 2 * time.Minute
	// callTime limits one call of the judge.
	callTime = 100 * time.Second
	// sweep is the interval in which a node reads due asks without being woken.
	sweep = 30 * time.Second
	// maxCalls is how many calls the judge has for one verdict.
	maxCalls = 3
	// maxTries is how often an ask is taken up before a person is asked.
	maxTries = 4
	// backoff is the wait before the second try. It grows fourfold with each.
	backoff = 15 * time.Second
	// queueWait is the wait for a full queue.
	queueWait = 30 * time.Second
)

// The slugs of the faults of calls that a limit of the account does not allow.
const (
	budgetExhausted = "budget_exhausted"
	unpricedModel   = "unpriced_model"
)

// errLost says that another node has taken the ask.
var errLost = errors.New("ask: another node has it")

// free returns how many more asks this process could have judged now.
func (s *Service) free() int64 {
	if !s.running.Load() {
		return 0
	}
	return AtOnce - s.busy.Load()
}

// Loop has due asks judged until ctx ends. Any number of nodes may run it: a
// node claims an ask in the database, for a while. At the end the asks that are
// not judged are given back.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.running.Store(true)
	defer s.workers.Wait()
	defer s.running.Store(false)
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	freed := make(chan struct{}, 1)
	for {
		changed := s.Hub.Watch(event.AskTopic)
		in, end := observe.Pass(ctx, "ask.take")
		s.take(in, freed)
		end()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-freed:
		case <-tick.C:
		}
	}
}

// take starts a worker for each due ask, up to the number of free places.
func (s *Service) take(ctx context.Context, freed chan<- struct{}) {
	places := s.free()
	if places <= 0 {
		return
	}
	claim := id.New()
	due, err := s.claim(ctx, claim, places)
	if err != nil {
		s.logError(ctx, "take due asks", err)
		return
	}
	for _, c := range due {
		s.busy.Add(1)
		s.workers.Go(func() {
			defer func() {
				s.busy.Add(-1)
				select {
				case freed <- struct{}{}:
				default:
				}
			}()
			if err := s.judge(db.WithAccount(ctx, c.AccountID), c.ID, claim); err != nil {
				s.logError(ctx, "judge ask "+c.ID, err)
			}
		})
	}
}

func (s *Service) claim(ctx context.Context, claim string, most int64) (due []claimed, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		due, err = takeDue.All(tx, takeDueArgs{Now: tx.Now, DueAt: tx.Now.Add(hold), Claim: claim, Limit: most})
		return err
	})
	return due, err
}

func (s *Service) logError(ctx context.Context, what string, err error) {
	observe.Failed(ctx, err)
	if ctx.Err() == nil {
		s.Logger.ErrorContext(ctx, what, "error", err)
	}
}

// judge has one claimed ask judged and carries out the verdict.
func (s *Service) judge(ctx context.Context, askID, claim string) error {
	var r row
	var system, prompt string
	var full bool
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if r, err = byID.One(tx, tx.Account, askID); err != nil {
			return err
		}
		if full, err = s.Queue.Full(tx); err != nil || full {
			return err
		}
		system, prompt, err = s.brief(tx, &r)
		return err
	})
	switch {
	case err != nil:
		return err
	case full:
		err := s.postpone(ctx, &r, claim, queueWait, false)
		if err == nil && ctx.Err() == nil {
			s.awaitRoom(ctx, r.AccountID, r.ID)
		}
		return err
	case r.Tries > maxTries:
		return s.handToPerson(ctx, &r, claim, JudgeUnavailable,
			fmt.Sprintf("The ask was taken up %d times, and each time something kept the judge from an answer.", maxTries))
	}
	if r.SessionID != nil { // a limit may still stop its judge
		var stops []Stop
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			stops, err = s.stops(tx, []string{*r.SessionID})
			return err
		})
		if err != nil {
			return err
		}
		if len(stops) > 0 {
			return s.postpone(ctx, &r, claim, stopped, false)
		}
	}
	talk, err := s.Judge.Begin(ctx, Matter{AccountID: r.AccountID, RepoID: deref(r.RepoID), RequestedBy: deref(r.RequestedBy),
		Before: deref(r.SessionID)})
	if err != nil {
		return s.unanswered(ctx, &r, claim, deref(r.SessionID), err)
	}
	outcome, err := s.converse(ctx, &r, claim, talk, system, prompt)
	talk.End(context.WithoutCancel(ctx), outcome)
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// converse calls the judge until a verdict can be carried out, maxCalls times
// at most. It returns the outcome of the session.
func (s *Service) converse(ctx context.Context, r *row, claim string, talk Talk, system, prompt string) (outcome string, err error) {
	turns := []string{prompt}
	var wrong refusal
	for range maxCalls {
		if err := s.renew(ctx, r, claim, talk.ID()); err != nil {
			return "lost", err
		}
		answer, err := func() (string, error) {
			ctx, cancel := context.WithTimeout(ctx, callTime)
			defer cancel()
			return talk.Say(ctx, system, turns)
		}()
		if err != nil {
			return "failed", s.unanswered(ctx, r, claim, talk.ID(), err)
		}
		v, err := parse(answer)
		if err == nil {
			err = s.do(ctx, r.ID, claim, func(tx *db.Tx, r *row) error { return s.carryOut(tx, r, &v) })
		}
		if err == nil {
			return "succeeded", nil
		}
		switch f := fault.From(err); {
		case errors.Is(err, errLost):
			return "lost", err
		case f.Slug == "queue-full":
			return "succeeded", s.postpone(ctx, r, claim, max(f.RetryAfter, queueWait), false)
		case f.Slug == "no-capacity":
			return "succeeded", s.handToPerson(ctx, r, claim, NoCapacity,
				"The judge would have work done, but the account has no AI developers.")
		}
		var ok bool
		if wrong, ok = refusalOf(err); !ok {
			return "failed", err // an error of ours: the ask is taken up again after the hold
		}
		turns = append(turns, clip(answer, maxProblem), correction(wrong))
	}
	return "failed", s.handToPerson(ctx, r, claim, JudgeInvalid,
		fmt.Sprintf("No verdict could be carried out in %d tries. The last was refused: %s", maxCalls, wrong.Error()))
}

// do runs fn on the ask in one transaction. It returns errLost if the claim is
// not this node's any more.
func (s *Service) do(ctx context.Context, askID, claim string, fn func(*db.Tx, *row) error) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, ok, err := ofClaim.Maybe(tx, tx.Account, askID, claim); err != nil {
			return err
		} else if !ok {
			return errLost
		}
		r, err := byID.One(tx, tx.Account, askID)
		if err != nil {
			return err
		}
		return fn(tx, &r)
	})
}

// renew keeps the claim of an ask for another call. It returns errLost if the
// claim is not this node's any more.
func (s *Service) renew(ctx context.Context, r *row, claim, session string) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := renew.Exec(tx, renewArgs{AccountID: tx.Account, ID: r.ID, Claim: claim, DueAt: tx.Now.Add(hold)})
		if err != nil {
			return err
		}
		if n == 0 {
			return errLost
		}
		_, err = setSession.Exec(tx, setSessionArgs{AccountID: tx.Account, ID: r.ID, Claim: claim, SessionID: session})
		return err
	})
}

// handToPerson escalates the ask.
func (s *Service) handToPerson(ctx context.Context, r *row, claim, category, reason string) error {
	return s.do(ctx, r.ID, claim, func(tx *db.Tx, r *row) error { return escalate(tx, r, category, reason) })
}

// postpone leaves an ask pending for a while. spent tells whether this try
// counts.
func (s *Service) postpone(ctx context.Context, r *row, claim string, wait time.Duration, spent bool) error {
	tries := r.Tries
	if !spent {
		tries--
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := giveBack.Exec(tx, giveBackArgs{
			AccountID: tx.Account, ID: r.ID, Claim: claim, DueAt: tx.Now.Add(wait), Tries: tries,
		})
		return err
	})
}

// unanswered decides what follows a call without an answer. A failure that may
// pass is tried again; any other, and one that has not passed after maxTries,
// becomes a question to a person.
func (s *Service) unanswered(ctx context.Context, r *row, claim, session string, cause error) error {
	if ctx.Err() != nil { // this node stops: another may begin at once
		return s.postpone(context.WithoutCancel(ctx), r, claim, 0, false)
	}
	f := fault.From(cause)
	if f.Kind == fault.PaymentRequired && (f.Slug == budgetExhausted || f.Slug == unpricedModel) {
		return s.park(ctx, r, claim, session, f.Slug)
	}
	passing := f.Kind == fault.Internal || f.Kind == fault.Unavailable || f.Kind == fault.RateLimited ||
		errors.Is(cause, context.DeadlineExceeded)
	if f.Kind == fault.Internal {
		s.logError(ctx, "ask the judge", cause)
	}
	if passing && r.Tries < maxTries {
		return s.postpone(ctx, r, claim, max(f.RetryAfter, backoff<<(2*(r.Tries-1))), true)
	}
	why := "The model gave no answer in time."
	if f.Kind != fault.Internal {
		why = f.Detail
	}
	return s.handToPerson(ctx, r, claim, JudgeUnavailable, "No judge answered. "+why)
}
