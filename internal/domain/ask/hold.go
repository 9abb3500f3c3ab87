package ask

import (
	"context"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
)

// Hold says why triage leaves an ask pending.
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

// Stop is a limit that keeps the session of a judge from another call to its
// model.
type Stop struct {
	SessionID string
	Reason    string
	At        time.Time
	// ClearsWhen says when the limit ends, and Clear names the call that ends
	// it.
	ClearsWhen string
	Clear      *Clear
}

// FullQueue is the reason of the hold of an ask whose account's queue takes no
// more tasks.
const FullQueue = "queue_full"

// stopped is how long an ask whose judge a limit stops is left alone. Wake ends
// that earlier.
const stopped = time.Hour

// show returns asks of tx.Account as clients see them.
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
			out[i].Hold = &Hold{Reason: stops[k].Reason, Since: stops[k].At, ClearsWhen: stops[k].ClearsWhen,
				Clear: stops[k].Clear}
		case full:
			out[i].Hold = &Hold{Reason: FullQueue, Since: out[i].CreatedAt,
				ClearsWhen: "a task leaves the account's queue, which takes no more for now", Clear: nil}
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

// Wake makes the ask due whose judge had the session: no limit stops it any
// more.
func (s *Service) Wake(tx *db.Tx, account, sessionID string) error {
	waiting, err := pendingOf.All(tx, account, sessionID)
	if err != nil {
		return err
	}
	for _, askID := range waiting {
		st, ok, err := s.queue.State(tx, askID)
		if err != nil {
			return err
		}
		s.queue.Hurry(tx, askID)
		if !ok || st.State == due.Held { // it is judged once more
			continue
		}
		if err := releasedEvent.Record(tx, event.Subject{ID: askID, Account: account}, event.None{}); err != nil {
			return err
		}
	}
	return nil
}

// park leaves an ask pending until no limit stops its judge.
func (s *Service) park(r row, session, reason string) due.Outcome {
	return due.Decide(func(tx *db.Tx) (o due.Outcome, err error) {
		stops, err := s.stops(tx, []string{session})
		if err != nil {
			return o, err
		}
		if len(stops) == 0 { // the limit has ended meanwhile
			return due.Wait(0), nil
		}
		return due.Wait(stopped), heldEvent.Record(tx, event.Subject{ID: r.ID, RepoID: deref(r.RepoID)}, heldData{Reason: reason})
	})
}

// awaitRoom makes an ask due as soon as its account's full queue takes tasks
// again. If this node ends first, the ask becomes due by itself soon.
func (s *Service) awaitRoom(account, askID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		return
	}
	if s.blocked == nil {
		s.blocked = map[string][]string{}
	}
	waiting := s.blocked[account]
	if slices.Contains(waiting, askID) {
		return
	}
	s.blocked[account] = append(waiting, askID)
	if len(waiting) > 0 {
		return
	}
	ctx := db.WithAccount(s.life, account)
	s.workers.Go(func() {
		for {
			changed := s.Hub.Watch(event.QueueTopic(account))
			full := true
			err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
				full, err = s.Queue.Full(tx)
				return err
			})
			if err != nil || !full {
				s.logFailed(ctx, err)
				break
			}
			select {
			case <-ctx.Done():
				s.mu.Lock()
				delete(s.blocked, account)
				s.mu.Unlock()
				return
			case <-changed:
			}
		}
		s.mu.Lock()
		ids := s.blocked[account]
		delete(s.blocked, account)
		s.mu.Unlock()
		s.logFailed(ctx, s.DB.Write(ctx, func(tx *db.Tx) error {
			for _, id := range ids {
				s.queue.Add(tx, id, due.Entry{Account: account})
			}
			return nil
		}))
	})
}

func (s *Service) logFailed(ctx context.Context, err error) {
	if err != nil {
		s.logError(ctx, "wait for room in the queue", err)
	}
}
