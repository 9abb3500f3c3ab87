package ask

import (
	"context"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// Hold is why triage leaves an ask pending.
type Hold struct {
	_          struct{}  `doc:"Why triage leaves an ask pending."`
	Reason     string    `json:"reason" enum:"budget_exhausted,unpriced_model,queue_full" doc:"the first two: a limit in US dollars; queue_full: the account's queue takes no more"`
	Since      time.Time `json:"since" doc:"since when"`
	ClearsWhen string    `json:"clears_when" example:"a task leaves the account's queue" doc:"what has to happen for triage to take it up, in words"`
	Clear      *Clear    `json:"clear" doc:"the call that clears it; null when it only clears by itself"`
}

// Clear names a capability and its arguments.
type Clear struct {
	_          struct{}          `doc:"The call that ends a hold."`
	Capability string            `json:"capability" example:"billing.spend_cap_set" doc:"id of the capability to call"`
	Args       map[string]string `json:"args" example:"{}" doc:"its arguments"`
}

// Stop is what keeps the session of a judge from another call to its model.
type Stop struct {
	SessionID string
	Reason    string
	At        time.Time
	// ClearsWhen says what lets it go on, Clear which call does.
	ClearsWhen string
	Clear      *Clear
}

// FullQueue is the hold of an ask whose account's queue takes no more tasks.
const FullQueue = "queue_full"

// stopped is how long an ask whose judge may not be paid is left, unless it is
// woken: what stops it is told when it does so no more.
const stopped = time.Hour

// show makes the wire form of asks of tx.Account.
func (s *Service) show(tx *db.Tx, rows []row) ([]Ask, error) {
	out := make([]Ask, len(rows))
	var sessions []string
	pending := false
	for i := range rows {
		out[i] = rows[i].wire()
		if rows[i].State == Pending {
			if pending = true; rows[i].SessionID != nil {
				sessions = append(sessions, *rows[i].SessionID)
			}
		}
	}
	if !pending {
		return out, nil
	}
	stops, err := s.stops(tx, sessions)
	if err != nil {
		return nil, err
	}
	full, err := s.Queue.Full(tx)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].State != Pending {
			continue
		}
		k := slices.IndexFunc(stops, func(b Stop) bool { return rows[i].SessionID != nil && b.SessionID == *rows[i].SessionID })
		switch {
		case k >= 0:
			out[i].Hold = &Hold{Reason: stops[k].Reason, Since: stops[k].At.Truncate(time.Millisecond), ClearsWhen: stops[k].ClearsWhen, Clear: stops[k].Clear}
		case full:
			out[i].Hold = &Hold{Reason: FullQueue, Since: out[i].CreatedAt, ClearsWhen: "a task leaves the account's queue, which takes no more for now", Clear: nil}
		}
	}
	return out, nil
}

func (s *Service) stops(tx *db.Tx, sessions []string) ([]Stop, error) {
	if len(sessions) == 0 {
		return nil, nil
	}
	return s.Budgets.Stops(tx, sessions)
}

// Wake has the ask taken up again whose judge had the session: what stopped it
// does so no more.
func (s *Service) Wake(tx *db.Tx, account, sessionID string) error {
	woken, err := wakeOfSession.All(tx, account, sessionID, tx.Now)
	for _, askID := range woken {
		if err := releasedEvent.Record(tx, event.Subject{ID: askID, Account: account}, event.None{}); err != nil {
			return err
		}
	}
	if len(woken) > 0 {
		s.Hub.Notify(tx, event.AskTopic)
	}
	return err
}

// park leaves an ask pending until its judge may be paid again.
func (s *Service) park(ctx context.Context, r *row, claim, session, reason string) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		stops, err := s.stops(tx, []string{session})
		if err != nil {
			return err
		}
		wait := stopped
		if len(stops) == 0 { // it was cleared meanwhile
			wait = 0
			s.Hub.Notify(tx, event.AskTopic)
		}
		n, err := giveBack.Exec(tx, giveBackArgs{
			AccountID: tx.Account, ID: r.ID, Claim: claim, DueAt: tx.Now.Add(wait), Tries: r.Tries - 1,
		})
		if err != nil || n == 0 || wait == 0 {
			return err
		}
		return heldEvent.Record(tx, event.Subject{ID: r.ID, RepoID: deref(r.RepoID)}, heldData{Reason: reason})
	})
}

// awaitRoom has an ask taken up as soon as its account's queue, which is full,
// takes tasks again. Should this node end first, the ask is due by itself soon.
func (s *Service) awaitRoom(ctx context.Context, account, askID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outside == nil {
		s.outside = map[string][]string{}
	}
	waiting := s.outside[account]
	if slices.Contains(waiting, askID) {
		return
	}
	s.outside[account] = append(waiting, askID)
	if len(waiting) > 0 {
		return
	}
	s.workers.Go(func() {
		ctx := db.WithAccount(ctx, account)
		for {
			news := s.Hub.Watch(event.QueueTopic(account))
			full := true
			err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
				full, err = s.Queue.Full(tx)
				return err
			})
			if err != nil || !full {
				s.complainOf(ctx, err)
				break
			}
			select {
			case <-ctx.Done():
				s.mu.Lock()
				delete(s.outside, account)
				s.mu.Unlock()
				return
			case <-news:
			}
		}
		s.mu.Lock()
		ids := s.outside[account]
		delete(s.outside, account)
		s.mu.Unlock()
		s.complainOf(ctx, s.DB.Write(ctx, func(tx *db.Tx) error {
			for _, id := range ids {
				if _, err := wakeID.Exec(tx, account, id, tx.Now); err != nil {
					return err
				}
			}
			s.Hub.Notify(tx, event.AskTopic)
			return nil
		}))
	})
}

func (s *Service) complainOf(ctx context.Context, err error) {
	if err != nil {
		s.complain(ctx, "wait for room in the queue", err)
	}
}
