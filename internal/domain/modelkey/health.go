package modelkey

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/llm"
)

// RestReason is why a key rests.
type RestReason string

// Why a key rests.
const (
	RateLimited = "rate_limited" // by the provider's rate limit
	Overloaded  = "overloaded"   // the provider said when to come again
	Exhausted   = "exhausted"    // until a reset that is further away than a rate limit's
	Refused     = "refused"      // for its own sake: revoked, or without permission
	Broken      = "failing"      // the provider failed several calls in a row
)

// Values lists all reasons.
func (RestReason) Values() []string {
	return []string{RateLimited, Overloaded, Exhausted, Refused, Broken}
}

// Times of a rest.
const (
	shortest = time.Second
	firstTry = 15 * time.Second // where the provider tells no wait; twice as long after each rest
	longest  = 15 * time.Minute // of a rest that is no exhaustion
	halfHour = 30 * time.Minute // of a key that is refused, or spent without saying until when
	farthest = 32 * 24 * time.Hour
	// probeTime is how long others wait for a call that tries a key out.
	probeTime = 30 * time.Second
	// SlipsAllowed is how many calls in a row a provider may fail, on one node, before its key rests.
	SlipsAllowed = 3
)

// Health is how a key does, as all nodes know it.
type Health struct {
	RestUntil  *time.Time // nil: it has not rested since it last worked
	RestSince  *time.Time
	RestWhy    string
	Rests      int64 // in a row
	Slips      int64 // calls that the provider failed, as nodes before this version counted them
	ProbeUntil *time.Time
	HealthSeq  int64 // counts changes
}

// Resting tells whether no call goes over the key now.
func (h Health) Resting(now time.Time) bool { return h.RestUntil != nil && now.Before(*h.RestUntil) }

// Unproven tells whether the key has rested and no call has shown since that it works.
func (h Health) Unproven() bool { return h.RestUntil != nil }

// Probed tells whether a call tries the key out now.
func (h Health) Probed(now time.Time) bool { return h.ProbeUntil != nil && now.Before(*h.ProbeUntil) }

// Sick tells whether a call that works would be news.
func (h Health) Sick() bool { return h.Unproven() || h.Slips > 0 }

// Slip tells whether a call shows no more than that the provider has failed it: then the key rests
// only if others before it have failed as well. The calls of a key are counted where they are made,
// so that one that fails waits for no database before it goes over another key.
func (h Health) Slip(o llm.Outcome) bool {
	why, _ := h.rest(o)
	return why == Broken && h.RestUntil == nil && !o.Gone
}

// after is the health of a key once a call over it has ended; false: it is as before. While
// the key rests nothing that ends moves the end of the rest: neither a call that was under way
// nor anything else.
func (h Health) after(now time.Time, o llm.Outcome) (Health, bool) {
	if h.Resting(now) {
		return h, false
	}
	if o.Gone {
		changed := h.ProbeUntil != nil
		h.ProbeUntil = nil
		return h, changed
	}
	why, wait := h.rest(o)
	switch {
	case why == "" && !h.Sick():
		return h, false
	case why == "":
		return Health{}, true
	}
	until := now.Add(wait)
	return Health{RestUntil: &until, RestSince: &now, RestWhy: why, Rests: h.Rests + 1}, true
}

// rest is why and how long a key rests after a call; empty: the call shows that it works.
func (h Health) rest(o llm.Outcome) (why string, wait time.Duration) {
	var told *time.Duration
	if o.Failure != nil {
		told = o.Failure.RetryAfter
	}
	growing := min(firstTry<<min(h.Rests, 10), longest)
	switch o.Kind {
	case llm.RateLimited:
		why = RateLimited
	case llm.Overloaded:
		why = Overloaded
	case llm.OutOfQuota:
		why = Exhausted
	case llm.KeyRefused:
		return Refused, halfHour
	case llm.ServerFailed, llm.CutShort, llm.NotAnAnswer:
		return Broken, growing
	default:
		return "", 0
	}
	switch {
	case told != nil && *told > longest:
		return Exhausted, min(*told, farthest)
	case told != nil && (why != Exhausted || *told > 0):
		return why, max(*told, shortest)
	case why == Exhausted:
		return why, halfHour
	case why == Overloaded:
		return Broken, growing
	}
	return why, growing
}

// Over notes what came of a call over a key, for all nodes, and returns the key's health. The
// caller calls it only where that is news: for a call that failed and is no Slip but the last that
// is allowed, or over a key that is Sick.
// What a call says of a secret that was replaced meanwhile changes nothing.
func (s *Service) Over(ctx context.Context, account string, over llm.Route, o llm.Outcome) (out Health, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		r, ok, err := byID.ForUpdate().Maybe(tx, account, over.ID)
		if err != nil || !ok {
			return err
		}
		changed := false
		if out = r.Health; r.Version == over.Version {
			out, changed = r.after(tx.Now, o)
		}
		if !changed {
			return nil
		}
		out.HealthSeq = r.HealthSeq + 1
		r.Health = out
		if _, err := setHealth.Exec(tx, r); err != nil {
			return err
		}
		s.Hub.Notify(tx, event.QueueTopic(account), event.QueueTopic("")) // tasks may wait for it, or begin to
		return nil
	})
	return out, err
}

// TryOut tells whether a call may try out a key that has rested: one at a time, over all nodes.
func (s *Service) TryOut(ctx context.Context, account, keyID string) (h Health, ok bool, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := tryOut.Exec(tx, tryOutArgs{AccountID: account, ID: keyID, Now: tx.Now, Until: tx.Now.Add(probeTime)})
		if err != nil {
			return err
		}
		r, found, err := byID.Maybe(tx, account, keyID)
		h, ok = r.Health, found && n > 0
		return err
	})
	return h, ok, err
}

// Healths reads the health of keys anew, by id. ids are those of each account.
func (s *Service) Healths(ctx context.Context, ids map[string][]string) (map[string]Health, error) {
	out := map[string]Health{}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		for account, of := range ids {
			for _, keyID := range of {
				r, ok, err := byID.Maybe(tx, account, keyID)
				if err != nil {
					return err
				}
				if ok {
					out[keyID] = r.Health
				}
			}
		}
		return nil
	})
	return out, err
}

// KeyRest is the rest of a key, as clients see it.
type KeyRest struct {
	_      struct{}   `doc:"Why no call goes over a key at the moment."`
	Reason RestReason `json:"reason" doc:"exhausted: until its provider resets a limit; refused: the provider does not take it; failing: the provider failed several calls in a row"`
	Since  time.Time  `json:"since" doc:"when it began"`
	Until  time.Time  `json:"until" doc:"from when on the next call tries the key; the others follow if that works"`
}

func (h Health) wire() *KeyRest {
	if h.RestUntil == nil || h.RestSince == nil {
		return nil
	}
	return &KeyRest{Reason: RestReason(h.RestWhy), Since: *h.RestSince, Until: *h.RestUntil}
}
