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

// Judge is the model behind triage.
type Judge interface {
	// Begin opens a session about an ask. It fails with a fault if the account
	// has no model.
	Begin(ctx context.Context, m Matter) (Talk, error)
}

// Matter is what a judge is asked about.
type Matter struct {
	AccountID   string
	RepoID      string // empty: it is about none alone
	RequestedBy string // the person on whose bill it is; empty: nobody's
	// Before is the session of the try before, which is ended: its node may have
	// died over it. Empty: there was none.
	Before string
}

// Talk is one conversation with a judge.
type Talk interface {
	// ID is the session that the talk is accounted to.
	ID() string
	// Say sends prompts and the answers so far, which take turns, and returns
	// the next answer.
	Say(ctx context.Context, system string, turns []string) (string, error)
	// End closes the session.
	End(ctx context.Context, outcome string)
}

// How asks are judged.
const (
	// AtOnce is how many asks a node has judged at the same time.
	AtOnce = 4
	// hold is how long a node has an ask for: after a crash another takes it
	// up then. It is renewed before each call.
	hold = 2 * time.Minute
	// callTime bounds one call of the judge.
	callTime = 100 * time.Second
	// sweep is how often a node looks for asks that nobody told it of.
	sweep = 30 * time.Second
	// maxCalls is how often the judge may correct its verdict.
	maxCalls = 3
	// maxTries is how often an ask is taken up before a person is asked.
	maxTries = 4
	// backoff is the wait before the second try; it grows fourfold.
	backoff = 15 * time.Second
	// roomy is the wait for a full queue.
	roomy = 30 * time.Second
)

// The slugs of calls that a limit of the account's does not allow.
const (
	budgetExhausted = "budget_exhausted"
	unpricedModel   = "unpriced_model"
)

// errLost ends the work on an ask that somebody else has by now.
var errLost = errors.New("ask: another node has it")

// free is how many more asks this process could have judged right now.
func (s *Service) free() int64 {
	if !s.running.Load() {
		return 0
	}
	return AtOnce - s.busy.Load()
}

// Loop has due asks judged until ctx ends. Any node may run it: an ask is taken
// in the database, for a while. At the end what is not judged is given back.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.running.Store(true)
	defer s.workers.Wait()
	defer s.running.Store(false)
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	freed := make(chan struct{}, 1)
	for {
		news := s.Hub.Watch(event.AskTopic)
		in, end := observe.Pass(ctx, "ask.take")
		s.take(in, freed)
		end()
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-freed:
		case <-tick.C:
		}
	}
}

// take starts a worker for each due ask that there is a place for.
func (s *Service) take(ctx context.Context, freed chan<- struct{}) {
	places := s.free()
	if places <= 0 {
		return
	}
	claim := id.New()
	due, err := s.claim(ctx, claim, places)
	if err != nil {
		s.complain(ctx, "take due asks", err)
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
				s.complain(ctx, "judge ask "+c.ID, err)
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

func (s *Service) complain(ctx context.Context, what string, err error) {
	observe.Failed(ctx, err)
	if ctx.Err() == nil {
		s.Logger.ErrorContext(ctx, what, "error", err)
	}
}

// judge has one claimed ask judged, and does what the verdict says.
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
		err := s.postpone(ctx, &r, claim, roomy, false)
		if err == nil && ctx.Err() == nil {
			s.awaitRoom(ctx, r.AccountID, r.ID)
		}
		return err
	case r.Tries > maxTries:
		return s.hand(ctx, &r, claim, JudgeUnavailable, fmt.Sprintf("The ask was taken up %d times, and each time something kept the judge from an answer.", maxTries))
	}
	if r.SessionID != nil { // a limit may still leave its judge no money
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
	talk, err := s.Judge.Begin(ctx, Matter{AccountID: r.AccountID, RepoID: deref(r.RepoID), RequestedBy: deref(r.RequestedBy), Before: deref(r.SessionID)})
	if err != nil {
		return s.unanswered(ctx, &r, claim, deref(r.SessionID), err)
	}
	outcome, err := s.hear(ctx, &r, claim, talk, system, prompt)
	talk.End(context.WithoutCancel(ctx), outcome)
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// hear asks for a verdict until one can be carried out.
func (s *Service) hear(ctx context.Context, r *row, claim string, talk Talk, system, prompt string) (outcome string, err error) {
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
			return "succeeded", s.postpone(ctx, r, claim, max(f.RetryAfter, roomy), false)
		case f.Slug == "no-capacity":
			return "succeeded", s.hand(ctx, r, claim, NoCapacity, "The judge would have work done, but the account has no AI developers.")
		}
		var ok bool
		if wrong, ok = refusalOf(err); !ok {
			return "failed", err // ours: it is taken up again after the hold
		}
		turns = append(turns, clip(answer, maxProblem), again(wrong))
	}
	return "failed", s.hand(ctx, r, claim, JudgeInvalid, fmt.Sprintf("No verdict could be carried out in %d tries. The last was refused: %s", maxCalls, wrong.Error()))
}

// do runs fn on the ask in one transaction, if it is still ours.
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

// renew keeps an ask for another call.
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

// hand gives the ask to a person.
func (s *Service) hand(ctx context.Context, r *row, claim, category, reason string) error {
	return s.do(ctx, r.ID, claim, func(tx *db.Tx, r *row) error { return s.escalate(tx, r, category, reason) })
}

// postpone leaves an ask pending for a while. A try that was spent counts.
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

// unanswered decides what follows when the judge has said nothing. What may
// pass is tried again; the rest, and what does not pass, is a person's.
func (s *Service) unanswered(ctx context.Context, r *row, claim, session string, cause error) error {
	if ctx.Err() != nil { // this node stops: the next may begin at once
		return s.postpone(context.WithoutCancel(ctx), r, claim, 0, false)
	}
	f := fault.From(cause)
	if f.Kind == fault.PaymentRequired && (f.Slug == budgetExhausted || f.Slug == unpricedModel) {
		return s.park(ctx, r, claim, session, f.Slug)
	}
	passing := f.Kind == fault.Internal || f.Kind == fault.Unavailable || f.Kind == fault.RateLimited || errors.Is(cause, context.DeadlineExceeded)
	if f.Kind == fault.Internal {
		s.complain(ctx, "ask the judge", cause)
	}
	if passing && r.Tries < maxTries {
		return s.postpone(ctx, r, claim, max(f.RetryAfter, backoff<<(2*(r.Tries-1))), true)
	}
	why := "The model gave no answer in time."
	if f.Kind != fault.Internal {
		why = f.Detail
	}
	return s.hand(ctx, r, claim, JudgeUnavailable, "No judge answered. "+why)
}
