package box

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
)

// left is the stored presence of a box that has stopped, until it connects
// again. Clients see it as offline.
const left = "left"

// leave stores the last beat of a box whose program ends. After its commit the
// box is offline, none of its claims gets a run on any node, and runs that the
// box has not heard of are back in the queue. The box stays offline until its
// next hello: an earlier beat that arrives late does not bring it back.
func (s *Service) leave(ctx context.Context, boxID string, p protocol.Presence) error {
	s.beats.drop(boxID)
	return s.DB.Write(asBox(ctx, boxID), func(tx *db.Tx) error {
		r, err := s.connected(tx, boxID)
		if err != nil || r.Presence == left {
			return err
		}
		if !s.beats.mayChange(boxID) {
			return changesTooOften
		}
		if _, err := setLeft.Exec(tx, r.ID, tx.Now, db.JSON[protocol.Presence]{V: p}); err != nil {
			return err
		}
		if presenceAt(r.Presence, r.LastBeatAt, tx.Now) != Offline {
			if err := offlineEvent.Record(tx, event.Subject{ID: r.ID}, quietData{LastBeat: &tx.Now, Left: true}); err != nil {
				return err
			}
		}
		if r.State == Draining && len(p.Runs) == 0 {
			if err := emptied(tx, r.ID); err != nil {
				return err
			}
		}
		s.wake(tx, tx.Account)
		return Left.Send(tx, Farewell{BoxID: boxID, Held: p.Runs})
	})
}

// emptied marks a draining box of tx.Account as drained, and records that it
// has handed back its last run.
func emptied(tx *db.Tx, boxID string) error {
	n, err := setDrained.Exec(tx, boxID)
	if err != nil || n == 0 {
		return err
	}
	return emptiedEvent.Record(tx, event.Subject{ID: boxID}, event.None{})
}

// drop discards the beat of a box that is not stored yet.
func (b *beats) drop(boxID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, boxID)
}
