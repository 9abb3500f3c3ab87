package rollout

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// carry takes a rollout one step on, in one transaction.
func (s *Service) carry(ctx context.Context, j due.Job[row]) due.Outcome {
	obstacle := ""
	if j.Row.State == Preparing {
		err := s.Releases.Stock(ctx, j.Row.Channel, j.Row.Version)
		if errors.Is(err, blob.ErrOff) {
			obstacle = "This installation keeps no objects, so that boxes can be handed no program."
		} else if err != nil {
			return due.Again(err)
		}
	}
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		r, ok, err := byID.ForUpdate().Maybe(tx, tx.Account, j.Key)
		if err != nil || !ok || r.EndedAt != nil {
			return due.Done(nil), err
		}
		ended, err := s.step(tx, &r, obstacle)
		if err != nil || ended {
			return due.Done(nil), err
		}
		return due.Wait(look), nil
	})
}

// scene is what a step of a rollout looks at.
type scene struct {
	boxes  []boxRow
	now    map[string]box.Standing
	builds []release.Build
	policy policyOf
}

func (s *Service) scene(tx *db.Tx, r row) (out scene, err error) {
	if out.boxes, err = boxesOf.All(tx, r.ID); err != nil {
		return out, err
	}
	all, err := s.Boxes.Standings(tx)
	if err != nil {
		return out, err
	}
	out.now = make(map[string]box.Standing, len(all))
	for _, b := range all {
		out.now[b.ID] = b
	}
	if out.policy, err = policies(tx); err == nil {
		out.builds, err = s.Releases.Builds(tx, r.Channel)
	}
	return out, err
}

// step reads what boxes say, and moves the rollout. ended tells that nothing is left to do.
func (s *Service) step(tx *db.Tx, r *row, obstacle string) (ended bool, err error) {
	in, err := s.scene(tx, *r)
	if err != nil {
		return false, err
	}
	for i := range in.boxes {
		b := &in.boxes[i]
		var st *box.Standing
		if each, ok := in.now[b.BoxID]; ok {
			st = &each
		}
		if state, why := boxAfter(*b, st, r.Version, tx.Now); state != "" {
			if err := moveBox(tx, *r, b, state, why); err != nil {
				return false, err
			}
		}
	}
	before := *r
	if err := s.count(tx, r, in.boxes); err != nil {
		return false, err
	}
	if obstacle == "" {
		obstacle = halts(*r, in.boxes, in.builds)
	}
	if obstacle != "" {
		return true, s.end(tx, r, in.boxes, Halted, obstacle)
	}
	r.State, r.Wave = next(*r, in.boxes, tx.Now)
	switch {
	case r.State == before.State && r.Wave == before.Wave:
		if r.rates() != before.rates() {
			_, err = update.Exec(tx, *r)
		}
		return false, err
	case r.State == Done:
		return true, s.end(tx, r, in.boxes, Done, "")
	case r.State == Soaking:
		until := tx.Now.Add(time.Duration(r.SoakS) * time.Second)
		r.SoakUntil = &until
	default:
		if err := s.tell(tx, *r, in); err != nil {
			return false, err
		}
	}
	r.ChangedAt = tx.Now
	if _, err := update.Exec(tx, *r); err != nil {
		return false, err
	}
	return false, movedEvent.Record(tx, event.Subject{ID: r.ID}, r.moved())
}

func (r row) moved() movedData {
	return movedData{
		State: r.State, Wave: r.Wave, Version: r.Version, Until: r.SoakUntil, Why: r.Why, Runs: r.RunsAfter, Failed: r.FailedAfter,
	}
}

// count counts the runs on updated boxes.
func (s *Service) count(tx *db.Tx, r *row, boxes []boxRow) error {
	good := map[string]time.Time{}
	for _, b := range boxes {
		if b.State == Good {
			good[b.BoxID] = b.ChangedAt
		}
	}
	if len(good) == 0 {
		return nil
	}
	all, err := s.Runs.Outcomes(tx, slices.MinFunc(slices.Collect(maps.Values(good)), time.Time.Compare))
	r.RunsAfter, r.FailedAfter = since(all, good)
	return err
}

// tell gives the boxes of a wave their command.
func (s *Service) tell(tx *db.Tx, r row, in scene) error {
	for i := range in.boxes {
		b := &in.boxes[i]
		if b.Wave != r.Wave || b.State != Waits {
			continue
		}
		st, ok := in.now[b.BoxID]
		if !ok {
			if err := moveBox(tx, r, b, Away, "It was revoked."); err != nil {
				return err
			}
			continue
		}
		state, why, steps := classify(st, in.policy, r.Channel, r.Version, in.builds)
		if state != Waits {
			if err := moveBox(tx, r, b, Away, why); err != nil {
				return err
			}
			continue
		}
		if err := s.tellBox(tx, r, b, steps[0]); err != nil {
			return err
		}
	}
	return nil
}

// tellBox tells a box to take a program.
func (s *Service) tellBox(tx *db.Tx, r row, b *boxRow, u protocol.Update) error {
	u.IdleMS, u.TrialMS = idle.Milliseconds(), trial.Milliseconds()
	b.CommandID, b.Step = id.New(), u.Version
	if err := s.Boxes.Enqueue(tx, b.BoxID, protocol.Command{ID: b.CommandID, Kind: protocol.CommandUpdate, Update: &u}); err != nil {
		return err
	}
	return moveBox(tx, r, b, Told, "")
}

// moveBox gives a box of a rollout its next state.
func moveBox(tx *db.Tx, r row, b *boxRow, state, why string) error {
	b.State, b.Why, b.ChangedAt = state, why, tx.Now
	if _, err := updateBox.Exec(tx, *b); err != nil {
		return err
	}
	of := b.Step
	if of == "" {
		of = r.Version
	}
	return boxEvents[state].Record(tx, event.Subject{ID: b.BoxID}, boxData{BoxID: b.BoxID, Version: of, Why: why})
}

// end ends a rollout. Boxes that were told, and do not run the release yet, are told to forget it.
func (s *Service) end(tx *db.Tx, r *row, boxes []boxRow, state, why string) error {
	for _, b := range boxes {
		if b.State != Told {
			continue
		}
		if err := s.Boxes.Enqueue(tx, b.BoxID, protocol.Command{Kind: protocol.CommandUpdate}); err != nil {
			return err
		}
	}
	r.State, r.Why, r.ChangedAt, r.EndedAt = state, why, tx.Now, &tx.Now
	if _, err := update.Exec(tx, *r); err != nil {
		return err
	}
	s.queue.Drop(tx, r.ID)
	return endedEvent.Record(tx, event.Subject{ID: r.ID}, r.moved())
}
