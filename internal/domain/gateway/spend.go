package gateway

import (
	"context"
	"fmt"
	"math"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

const (
	// batchTime is how long a record waits for others, to share a commit with them.
	batchTime = 20 * time.Millisecond
	// storeTime is how long records wait for the database at most.
	storeTime = 10 * time.Second
)

// record is a call that is over.
type record struct {
	owner
	over  llm.Route
	usage llm.Usage
}

// Reserve sets aside what a call may cost. It fails with fault.PaymentRequired if a
// budget has too little left, or if the model has no price and a budget applies;
// both also stop the session's run.
func (s *Service) Reserve(ctx context.Context, g llm.Grant, over llm.Route, q llm.Quote) (int64, error) {
	o, ok := g.Session.(owner)
	if !ok {
		return 0, fmt.Errorf("reserve for a call of session %v, which is none", g.Session)
	}
	payer := o.payer(over).session
	if !q.Priced {
		m := unpriced(over, q)
		err := s.Budget.ReserveUnpriced(ctx, payer, m)
		if err == nil && over.Capped {
			err = ofKey(s.Budget.ReserveKeyUnpriced(ctx, payer, over.ID, m))
		}
		return 0, exhausted(over, err)
	}
	micros, err := s.Budget.Reserve(ctx, payer, q.Most, q.Least)
	if err == nil && over.Capped {
		micros, err = s.Budget.ReserveKey(ctx, payer, over.ID, micros, q.Least)
		err = ofKey(err)
	}
	return micros, exhausted(over, err)
}

func unpriced(over llm.Route, q llm.Quote) budget.Model {
	return budget.Model{Provider: string(over.Provider), Name: q.Model, Key: over.ID}
}

// ofKey makes of the refusal of a key's limit one that another key may mend.
func ofKey(err error) error {
	if fault.IsKind(err, fault.PaymentRequired) {
		return fmt.Errorf("%w: %w", llm.ErrKeySpent, err)
	}
	return err
}

// Spent implements llm.Gate: no key of those that fit has room for a call, and its run stops.
func (s *Service) Spent(ctx context.Context, g llm.Grant, all []llm.Spent) error {
	o, ok := g.Session.(owner)
	if !ok {
		return fmt.Errorf("no key is left for a call of session %v, which is none", g.Session)
	}
	var keys []string
	need, of := int64(math.MaxInt64), budget.Model{}
	for _, k := range all {
		keys = append(keys, k.ID)
		if k.Quote.Priced {
			need = min(need, k.Quote.Least)
		}
	}
	if need == math.MaxInt64 {
		of = unpriced(all[0].Route, all[0].Quote)
	}
	refused, err := s.Budget.StopKeys(ctx, o.session, keys, need, of)
	if err != nil {
		return err
	}
	return refused
}

// Record adds a call to its session. The answer to the caller does not wait for the
// commit, which would double the time that the gateway adds to a call: a process that
// is killed can lose the records of its last batchTime, and one that is stopped
// stores them in Close.
func (s *Service) Record(_ context.Context, g llm.Grant, over llm.Route, u llm.Usage) {
	o, ok := g.Session.(owner)
	if !ok {
		return // Authorize has not made the grant
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, record{o, over, u})
	if len(s.records) == 1 {
		s.writes.Go(func() {
			time.Sleep(batchTime)
			s.flush()
		})
	}
}

// flush stores all records. The cost of those that cannot be stored stays set aside
// and counts as spent.
func (s *Service) flush() {
	s.mu.Lock()
	all := s.records
	s.records = nil
	s.mu.Unlock()
	if len(all) == 0 {
		return
	}
	var calls []budget.Call
	for _, r := range all {
		calls = append(calls, r.budgetCalls()...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := s.Budget.Settle(tx, calls); err != nil {
			return err
		}
		for _, r := range all {
			if err := r.store(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return
	}
	s.Budget.Abandon(calls)
	for _, r := range all {
		s.Logger.Error("model call is not accounted for", "session", r.session, "provider", r.over.Provider, "model", r.usage.Model,
			"input_tokens", r.usage.InputTokens, "output_tokens", r.usage.OutputTokens, "cost_micros", r.usage.CostMicros, "error", err)
	}
}

// store adds a call to its session, and notes what the call showed about the key.
func (r record) store(tx *db.Tx) error {
	u := r.usage
	if err := session.AddCall(tx, r.sessionCall()); err != nil {
		return err
	}
	if err := r.noteUse(tx); err != nil {
		return err
	}
	if u.Fault == "" && u.Status/100 != 2 {
		return nil // the call failed before the provider saw the key
	}
	return r.noteKey(tx)
}
