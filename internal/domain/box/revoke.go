package box

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// The statuses of a Removal.
const (
	removed       = "revoked"
	retired       = "decommissioned"
	cascadeFailed = "cascade_failed"
)

// Removal is the answer of box.revoke and box.decommission.
type Removal struct {
	_         struct{}   `doc:"What box.revoke and box.decommission did."`
	ID        string     `json:"id" format:"uuid" doc:"id of the box"`
	State     string     `json:"state" enum:"draining,drained,revoked" doc:"draining and drained: it is not revoked yet"`
	Status    string     `json:"status" enum:"revoked,decommissioned,draining,cascade_failed" doc:"draining: it hands its work back, and is revoked and decommissioned after that, at revokes_at at the latest; cascade_failed: the box is revoked, but its live connection may last until the retry that is owed"`
	Detail    *string    `json:"detail" example:"null" doc:"what failed; null: nothing"`
	Requeued  int        `json:"requeued" doc:"tasks that were put back into the queue by this call"`
	Handing   int        `json:"handing_back" doc:"tasks in flight that it was told to hand back"`
	RevokesAt *time.Time `json:"revokes_at" doc:"while draining: when it is revoked at the latest"`
	RevokedAt *time.Time `json:"revoked_at" doc:"when it was revoked first"`
}

func (s *Service) revoke(ctx context.Context, in idIn) (out Removal, err error) {
	var first bool
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.find(tx, in.ID, true)
		if err != nil {
			return err
		}
		out, first, err = s.removeIn(tx, r, false)
		return err
	})
	if err != nil {
		return Removal{}, err
	}
	return s.disconnect(ctx, out, first), nil
}

// removeIn revokes a box within tx, and with retire takes it off the list. A second
// call does only the steps that are left; first tells whether this call revoked the
// box.
func (s *Service) removeIn(tx *db.Tx, r row, retire bool) (out Removal, first bool, err error) {
	first = r.State != Revoked
	out = Removal{ID: r.ID, State: Revoked, Status: removed, RevokedAt: r.RevokedAt}
	if first {
		if out.Requeued, err = s.revokeRow(tx, r); err != nil {
			return out, first, err
		}
		out.RevokedAt = &tx.Now
	}
	if !retire {
		return out, first, nil
	}
	out.Status = retired
	if r.RetiredAt != nil {
		return out, first, nil
	}
	if _, err := setRetired.Exec(tx, tx.Account, r.ID, tx.Now); err != nil {
		return out, first, err
	}
	// The request may be a while old: the box was to hand back its runs first.
	return out, first, retiredEvent.Record(tx, event.Subject{ID: r.ID},
		retiredData{AskedBy: r.RetireBy, Name: r.Name, Requeued: out.Requeued})
}

// disconnect ends the live connection of a revoked box.
func (s *Service) disconnect(ctx context.Context, out Removal, first bool) Removal {
	if first && s.Bus != nil {
		// The box may still be connected and hear this: it then asks over HTTPS
		// whether it is revoked, and stops all work.
		s.Bus.Nudge(out.ID, protocol.NudgeProve)
	}
	if err := s.settle(ctx, out.ID); err != nil {
		detail := "The box's live connection could not be cut yet. It is tried again until it succeeds."
		out.Status, out.Detail = cascadeFailed, &detail
	}
	return out
}

// revokeRow revokes the box within tx. The row in revoked_keys has every node
// shut the box out of the bus; the rows in revoked_tokens tell the box so even
// when it asks after its account, and with it its row, is deleted.
func (s *Service) revokeRow(tx *db.Tx, r row) (requeued int, err error) {
	if requeued, err = s.Runs.Revoked(tx, r.ID); err != nil {
		return 0, fmt.Errorf("take the work off box %s: %w", r.ID, err)
	}
	if _, err := deleteCommands.Exec(tx, r.ID); err != nil {
		return 0, err
	}
	if _, err := setRevoked.Exec(tx, tx.Account, r.ID, tx.Now); err != nil {
		return 0, err
	}
	if _, err := insertRevokedKey.Exec(tx, insertRevokedKeyArgs{Nkey: r.NKey, BoxID: r.ID, Account: r.NATSAccount,
		RevokedAt: tx.Now}); err != nil {
		return 0, err
	}
	if _, err := insertRevokedTokens.Exec(tx, r.ID); err != nil {
		return 0, err
	}
	if err := donation.BoxGone(tx, r.ID); err != nil {
		return 0, err
	}
	s.wake(tx, tx.Account)
	return requeued, revokedEvent.Record(tx, event.Subject{ID: r.ID}, revokedData{Requeued: requeued})
}

// stranger is the fault for a token that no box has: of a box that was revoked and is deleted since, with
// its account, or of none.
func stranger(tx *db.Tx, hash string) error {
	switch _, known, err := selectRevokedToken.Maybe(tx, hash); {
	case err != nil:
		return err
	case known:
		return revoked()
	default:
		return policy.Unauthenticated()
	}
}

// settle makes this node's bus shut the accounts of a box's revoked keys. Loop
// repeats it until that is certain.
func (s *Service) settle(ctx context.Context, boxID string) error {
	_, err := s.refuse(ctx, boxID)
	if err != nil {
		s.Logger.ErrorContext(ctx, "revoked key is not refused yet", "box", boxID, "error", err)
	}
	return err
}

// settleAfter is how long after a revocation its account is shut for the last
// time: a box that was connecting at that moment may have come in after the
// first. settleBack is how far each pass of settleAll looks back behind the
// pass before: the clocks of nodes differ, and transactions take a while.
const (
	settleAfter = 2 * time.Second
	settleBack  = time.Minute
)

// settled holds the keys that this node's bus has shut out for the last time.
// Each node has a bus of its own, so an account that another node has shut must
// be shut here too.
type settled struct {
	mu    sync.Mutex
	until time.Time            // all revocations before it are settled on this node
	keys  map[string]time.Time // settled keys of later revocations, with the time of each
}

// settleAll is settle for all boxes, which covers the revocations that other
// nodes made.
func (s *Service) settleAll(ctx context.Context) error {
	now, err := s.refuse(ctx, "")
	if err != nil {
		return err
	}
	s.settled.mu.Lock()
	defer s.settled.mu.Unlock()
	s.settled.until = now.Add(-settleBack)
	maps.DeleteFunc(s.settled.keys, func(_ string, at time.Time) bool { return at.Before(s.settled.until) })
	return nil
}

// refuse shuts the accounts of a box's revoked keys that are not settled, or
// those of all boxes if boxID is empty. It returns the time at which the keys
// were read.
func (s *Service) refuse(ctx context.Context, boxID string) (now time.Time, err error) {
	if s.Bus == nil {
		return now, nil
	}
	var keys []revokedKey
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		now = tx.Now
		keys, err = selectRevoked.All(tx, s.settled.since(now), boxID)
		return err
	})
	if err != nil {
		return now, err
	}
	for _, k := range keys {
		if !s.settled.has(k) && k.Account != nil {
			if err := s.Bus.Shut(ctx, *k.Account); err != nil {
				return now, fmt.Errorf("shut out box %s: %w", k.BoxID, err)
			}
		}
		if now.Sub(k.RevokedAt) >= settleAfter {
			s.settled.add(k)
		}
	}
	return now, nil
}

// since returns the time from which on revocations may not be settled.
func (d *settled) since(now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until.IsZero() {
		return now.Add(-settleBack) // no box was connected before
	}
	return d.until
}

func (d *settled) has(k revokedKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.keys[k.NKey]
	return ok
}

func (d *settled) add(k revokedKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keys == nil {
		d.keys = map[string]time.Time{}
	}
	d.keys[k.NKey] = k.RevokedAt
}
