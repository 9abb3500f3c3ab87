package budget

import (
	"context"
	"errors"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// SlugUnpriced is the slug of the refusal of a call because its model has no price
// and a limit in dollars applies.
const SlugUnpriced = "unpriced_model"

// Model is the model of a call without a price.
type Model struct {
	Provider, Name string
	Key            string // id of the key that the call would go over
}

// unpriced is the refusal of a call because its model has no price and a limit
// applies.
func unpriced(m Model, limited *Meter) *fault.Error {
	return fault.Newf(fault.PaymentRequired, SlugUnpriced,
		"%s is in dollars, and the model %s of %s has no price that it could be held to.", limitNames[limited.Scope], m.Name, m.Provider)
}

// limited is the narrowest of the meters with a limit; nil if none has one.
func limited(meters []Meter) *Meter {
	for i := len(meters) - 1; i >= 0; i-- {
		if meters[i].limit != nil {
			return &meters[i]
		}
	}
	return nil
}

// ReserveUnpriced is Reserve for a call to a model without a price. It sets nothing
// aside, and fails with fault.PaymentRequired where any limit in dollars applies,
// which also stops the session's run.
func (s *Service) ReserveUnpriced(ctx context.Context, session string, m Model) error {
	for {
		if err := s.takeUnpriced(ctx, s.reserveOf(session), session, m); !errors.Is(err, errReleased) {
			return err
		}
	}
}

// takeUnpriced is take for a call without a price.
func (s *Service) takeUnpriced(ctx context.Context, r *reserve, session string, m Model) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.isReleased() {
		return errReleased
	}
	if now := s.Clock(); now.Sub(r.unlimited) >= checkTime {
		if err := s.checkUnlimited(ctx, session, m); err != nil {
			return err
		}
		r.unlimited = now
	}
	r.begin(s.Clock())
	return nil
}

// checkUnlimited refuses a call to a model without a price, and stops the session,
// if a limit applies.
func (s *Service) checkUnlimited(ctx context.Context, session string, m Model) error {
	free := false
	read := func(tx *db.Tx) (subject, *Meter, error) {
		sub, err := selectSubject.One(tx, session)
		if err != nil {
			return sub, nil, err
		}
		meters, err := s.meters(tx, sub)
		return sub, limited(meters), err
	}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		_, limit, err := read(tx)
		free = limit == nil
		return err
	})
	if err != nil || free {
		return err
	}
	var refused error
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		sub, limit, err := read(tx)
		if refused = nil; err != nil || limit == nil {
			return err
		}
		refused = unpriced(m, limit)
		return s.stop(tx, session, sub, limit, 0, m)
	})
	if err != nil {
		return err
	}
	return refused
}

// stop stores what keeps a session from further calls, and stops its run: the limit
// of a meter leaves too little for a call that needs so much, or, for a model, there is no price.
func (s *Service) stop(tx *db.Tx, session string, sub subject, m *Meter, need int64, of Model) error {
	if sub.Kind == Gift || sub.Kind == Key {
		return nil // it is nobody's work that stops here
	}
	reason, why := SlugExhausted, exhausted(m.Scope).Detail
	if of.Name != "" {
		reason, why = SlugUnpriced, unpriced(of, m).Detail
	}
	on := session
	if sub.TaskID != nil {
		on = *sub.TaskID
	}
	if _, err := addStop.Exec(tx, addStopArgs{
		ID: on, AccountID: sub.AccountID, TaskID: sub.TaskID, SessionID: session, Reason: reason, Scope: m.Scope,
		Ref: m.Ref, Period: m.Period, Micros: *m.limit, Need: need, Provider: of.Provider, Model: of.Name, KeyID: of.Key,
		At: tx.Now,
	}); err != nil {
		return err
	}
	if sub.RunID == nil {
		return nil
	}
	return RunStopped.Send(tx, Stopped{RunID: *sub.RunID, Kind: reason, Why: why})
}
