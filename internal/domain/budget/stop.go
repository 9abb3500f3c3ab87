package budget

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// SlugUnpriced says that a model has no price where a limit in dollars holds.
const SlugUnpriced = "unpriced_model"

// Model is what a call without a price asks for.
type Model struct {
	Provider, Name string
	Key            string // id of the key that the call would go over
}

// unpriced is the refusal of a call whose cost nobody could hold to a limit.
func unpriced(m Model, limited *Meter) *fault.Error {
	return fault.Newf(fault.PaymentRequired, SlugUnpriced, "%s is in dollars, and the model %s of %s has no price that it could be held to.", names[limited.Scope], m.Name, m.Provider)
}

// limited is the narrowest of meters that has a limit, nil if none has.
func limited(meters []Meter) *Meter {
	for i := len(meters) - 1; i >= 0; i-- {
		if meters[i].limit != nil {
			return &meters[i]
		}
	}
	return nil
}

// ReserveUnpriced is Reserve for a call of a model that has no price. It is
// refused where any limit in dollars holds, which also stops the session's run.
func (s *Service) ReserveUnpriced(ctx context.Context, session string, m Model) error {
	p := s.purse(session)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		p.mu.Unlock()
		err := s.ReserveUnpriced(ctx, session, m)
		p.mu.Lock()
		return err
	}
	if now := s.Clock(); now.Sub(p.unlimited) >= recheck {
		if err := s.checkUnlimited(ctx, session, m); err != nil {
			return err
		}
		p.unlimited = now
	}
	p.calls, p.used = p.calls+1, s.Clock()
	return nil
}

// checkUnlimited stops a session over a model without a price if a limit holds.
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
		return s.stop(tx, session, sub, limit, m)
	})
	if err != nil {
		return err
	}
	return refused
}

// stop parks the work of a session that may make no further call: there is no
// room on a meter, or, for a model, no price to hold it to one.
func (s *Service) stop(tx *db.Tx, session string, sub subject, m *Meter, of Model) error {
	reason, why := SlugExhausted, exhausted(m.Scope).Detail
	if of != (Model{}) {
		reason, why = SlugUnpriced, unpriced(of, m).Detail
	}
	on := session
	if sub.TaskID != nil {
		on = *sub.TaskID
	}
	if _, err := addStop.Exec(tx, addStopArgs{
		ID: on, AccountID: sub.AccountID, TaskID: sub.TaskID, SessionID: session, Reason: reason, Scope: m.Scope,
		Ref: m.Ref, Period: m.Period, Micros: *m.limit, Provider: of.Provider, Model: of.Name, KeyID: of.Key,
		At: tx.Now,
	}); err != nil {
		return err
	}
	if sub.RunID == nil {
		return nil
	}
	return RunStopped.Send(tx, Stopped{RunID: *sub.RunID, Kind: reason, Why: why})
}

// Recheck lets go on what stopped for want of a price and needs none any more:
// the model has one, or no limit is left that asks for it. An empty account is
// every account.
func (s *Service) Recheck(tx *db.Tx, account string) error {
	stops, err := selectUnpriced.All(tx, account)
	for _, b := range stops {
		if b.SessionID == nil {
			continue
		}
		sub, ok, err := selectSubject.Maybe(tx, *b.SessionID)
		if err != nil {
			return err
		}
		if ok {
			meters, err := s.meters(tx, sub)
			if err != nil {
				return err
			}
			priced, err := s.Prices.Priced(tx, b.AccountID, Model{b.Provider, b.Model, b.KeyID})
			if err != nil {
				return err
			}
			if !priced && limited(meters) != nil {
				continue
			}
		}
		if err := s.free(tx, b); err != nil {
			return err
		}
	}
	return err
}

// free lets go on what a limit or a missing price had stopped.
func (s *Service) free(tx *db.Tx, b stopped) error {
	if _, err := dropStop.Exec(tx, b.ID); err != nil {
		return err
	}
	if b.TaskID != nil {
		return TaskFreed.Send(tx, Freed{Account: b.AccountID, ID: *b.TaskID})
	}
	return SessionFreed.Send(tx, Freed{Account: b.AccountID, ID: b.ID})
}

func (s *Service) freeAll(tx *db.Tx, all []stopped, err error) error {
	for _, b := range all {
		if err := s.free(tx, b); err != nil {
			return err
		}
	}
	return err
}
