package mergequeue

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

// Times of the loop. A node that builds a candidate has the batch for buildHold, and one
// that deletes a branch has that for refHold. Results of trees are kept for keepResults.
const (
	sweep       = 10 * time.Second
	buildHold   = 2 * time.Minute
	refHold     = 5 * time.Minute
	keepResults = 14 * 24 * time.Hour
	never       = math.MaxInt64
	maxRef      = 150 // bytes of the name of a base that are in the name of a candidate's branch
)

// Loop keeps the queues moving until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	var tidy db.Hourly
	s.Hub.Sweep(ctx, "mergequeue.sweep", event.PullTopic, sweep, func(ctx context.Context) {
		s.Pass(ctx)
		err := tidy.Do(ctx, s.DB, func(tx *db.Tx) error {
			_, err := forgetOld.Exec(tx, db.Micros(tx.Now.Add(-keepResults)))
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "tidy up", err)
		}
	})
	return nil
}

// Checked has the queues look at the checks of their candidates and groups.
func (s *Service) Checked(tx *db.Tx) { s.Hub.Notify(tx, event.PullTopic) }

// Pass moves every queue on as far as it goes now. A failure at one does not keep Pass
// from the others.
func (s *Service) Pass(ctx context.Context) {
	var all []placeRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = lines.All(tx)
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "read the merge queues", err)
	}
	for _, p := range all {
		ctx := db.WithAccount(ctx, p.AccountID)
		for again, steps := true, 0; again && steps < 20 && ctx.Err() == nil; steps++ {
			if again, err = s.step(ctx, p); err != nil {
				observe.Complain(ctx, s.Logger, "move a merge queue on", err, slog.String("repo", p.RepoID), slog.String("base", p.BaseRef))
				break
			}
		}
	}
	s.passRefs(ctx)
}

// step moves one queue on by a step, and tells whether there may be another one now.
func (s *Service) step(ctx context.Context, p placeRow) (again bool, err error) {
	var b batchRow
	var open bool
	err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		b, open, err = s.settle(tx, p)
		return err
	})
	if err != nil {
		return false, err
	}
	if err := s.tellRefused(ctx, p); err != nil || !open {
		return false, err
	}
	switch b.State {
	case Building:
		return s.build(ctx, b)
	case Checking:
		return s.judge(ctx, b)
	}
	return false, nil
}

// settle has those leave the queue of a base whose orders do not stand any more, and
// begins a batch if there is none. It answers the batch in flight.
func (s *Service) settle(tx *db.Tx, p placeRow) (b batchRow, open bool, err error) {
	r, there, err := repo.ByID(tx, p.RepoID)
	if err != nil {
		return b, false, err
	}
	if there {
		if err := repo.Lock(tx, r.ID); err != nil {
			return b, false, err
		}
	}
	all, err := line.All(tx, p.AccountID, p.RepoID, p.BaseRef)
	if err != nil {
		return b, false, err
	}
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.ActionID
	}
	orders, err := s.Orders.Standing(tx, ids)
	if err != nil {
		return b, false, err
	}
	if b, open, err = openBatch.Maybe(tx, p.AccountID, p.RepoID, p.BaseRef); err != nil {
		return b, false, err
	}
	off := !there || !r.Enabled || !On(r)
	broken := ""
	var own []entryRow
	for _, e := range all {
		o := orders[e.ActionID]
		stands := there && o.HeadSHA == e.HeadSHA && o.BaseRef == e.BaseRef
		switch {
		case e.State == Refused:
			continue // tellRefused sees to it
		case stands && (e.Kind == Host || !off):
			if e.Kind == Own {
				own = append(own, e)
			}
			continue
		}
		why := "its order was taken back"
		if stands {
			why = "the policy has no queue any more"
			if err := TurnCame.Send(tx, e.ActionID); err != nil {
				return b, false, err
			}
		}
		if err := s.leave(tx, r, e, why); err != nil {
			return b, false, err
		}
		if open && e.BatchID == b.ID {
			broken = "pull request #" + number(e.Number) + " left it: " + why
		}
	}
	if open && broken != "" {
		if err := s.drop(tx, b, broken); err != nil {
			return b, false, err
		}
		open = false
	}
	if len(own) == 0 && !open {
		return b, false, nil
	}
	return s.gather(tx, p, r, b, open)
}

// gather sees that the heads in line and the batch in flight belong together, and begins
// a batch if there is none.
func (s *Service) gather(tx *db.Tx, p placeRow, r repo.Ref, b batchRow, open bool) (batchRow, bool, error) {
	own, err := line.All(tx, p.AccountID, p.RepoID, p.BaseRef)
	if err != nil {
		return b, false, err
	}
	var waiting []entryRow
	members, going := 0, false
	for _, e := range own {
		switch {
		case e.Kind != Own || e.State == Refused:
		case e.State == Waiting:
			waiting = append(waiting, e)
		case open && e.BatchID == b.ID:
			members++
			if e.State != Going {
				continue
			}
			going = true
			if tx.Now.Sub(e.ChangedAt) >= sweep { // the word may have crossed a look at the order
				if err := TurnCame.Send(tx, e.ActionID); err != nil {
					return b, false, err
				}
			}
		default: // its batch has ended without it
			if err := s.back(tx, e); err != nil {
				return b, false, err
			}
			e.State, e.BatchID = Waiting, ""
			waiting = append(waiting, e)
		}
	}
	switch {
	case open && members == 0 && b.State == Merging:
		return b, false, s.end(tx, b, Merged, "")
	case open && (members == 0 || b.State == Merging && !going):
		return b, false, s.drop(tx, b, "a head left it")
	case open:
		return b, true, nil
	case len(waiting) == 0:
		return b, false, nil
	}
	most := int64(r.Policy.Merge.Batch)
	var chosen []entryRow
	for _, e := range waiting {
		limit := most
		if e.Most > 0 {
			limit = min(limit, e.Most)
		}
		if int64(len(chosen)) >= limit {
			break
		}
		most = limit
		chosen = append(chosen, e)
	}
	newID := id.New()
	ref := codehost.QueuePrefix + strings.ToValidUTF8(p.BaseRef[:min(len(p.BaseRef), maxRef)], "") + "-" + newID[len(newID)-8:]
	n, err := insertBatch.Exec(tx, insertBatchArgs{
		ID: newID, AccountID: p.AccountID, RepoID: p.RepoID, BaseRef: p.BaseRef, Ref: ref, Now: tx.Micros(),
	})
	if err != nil || n == 0 {
		return b, false, err
	}
	data := begunData{BaseRef: p.BaseRef}
	for i, e := range chosen {
		if _, err := setEntry.Exec(tx, setEntryArgs{
			ID: e.ID, Was: Waiting, State: Batched, BatchID: newID, Place: int64(i), Most: e.Most, Now: tx.Micros(),
		}); err != nil {
			return b, false, err
		}
		data.PRIDs = append(data.PRIDs, e.PRID)
	}
	if err := begunEvent.Record(tx, event.Subject{ID: newID, RepoID: p.RepoID}, data); err != nil {
		return b, false, err
	}
	return batchByID.Maybe(tx, newID)
}

// leave ends the place of a head that is not merged. It is taken out of the queue of its
// host as well.
func (s *Service) leave(tx *db.Tx, r repo.Ref, e entryRow, why string) error {
	n, err := leaveEntry.Exec(tx, leaveArgs{ID: e.ID, State: Out, Why: why, Now: tx.Micros()})
	if err != nil || n == 0 {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	if e.Kind == Host && r.ID != "" {
		if err := s.takeOut(tx, r, e.PRID, hostArgs{EntryID: e.ID, Number: e.Number, HeadSHA: e.HeadSHA}); err != nil {
			return err
		}
	}
	return leftEvent.Record(tx, event.Subject{ID: e.ID, RepoID: e.RepoID}, leftData{HeadSHA: e.HeadSHA, PRID: e.PRID, Why: why})
}

// back puts a head in line again, at its place.
func (s *Service) back(tx *db.Tx, e entryRow) error {
	_, err := setEntry.Exec(tx, setEntryArgs{ID: e.ID, Was: e.State, State: Waiting, Most: e.Most, Now: tx.Micros()})
	s.Hub.Notify(tx, event.PullTopic)
	return err
}

// drop ends a batch whose heads are not all merged. Those that are left are in line again.
func (s *Service) drop(tx *db.Tx, b batchRow, why string) error { return s.end(tx, b, Dropped, why) }

// end ends a batch in a state. The heads that it has yet are in line again.
func (s *Service) end(tx *db.Tx, b batchRow, state, why string) error {
	n, err := endBatch.Exec(tx, endBatchArgs{ID: b.ID, State: state, Why: why, Now: tx.Micros()})
	if err != nil || n == 0 {
		return err
	}
	members, err := s.members(tx, b)
	if err != nil {
		return err
	}
	for _, e := range members {
		if err := s.back(tx, e); err != nil {
			return err
		}
	}
	if b.TaskID != "" && b.State == Checking {
		if err := s.Checks.Stop(tx, b.TaskID); err != nil {
			return err
		}
	}
	s.Hub.Notify(tx, event.PullTopic)
	kind := map[string]event.Kind[endedData]{Merged: mergedEvent, Failed: failedEvent, Dropped: droppedEvent}[state]
	return kind.Record(tx, event.Subject{ID: b.ID, RepoID: b.RepoID}, endedData{BaseRef: b.BaseRef, SHA: b.SHA, Why: why})
}

// refuse throws a head out. Its pull request is told in a transaction of its own.
func (s *Service) refuse(tx *db.Tx, e entryRow, reason, why, log string) error {
	_, err := refuseEntry.Exec(tx, refuseArgs{ID: e.ID, Reason: reason, Why: why, Log: log, Now: tx.Micros()})
	s.Hub.Notify(tx, event.PullTopic)
	return err
}

// tellRefused tells the pull requests whose heads were thrown out.
func (s *Service) tellRefused(ctx context.Context, p placeRow) error {
	var all []entryRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = line.All(tx, p.AccountID, p.RepoID, p.BaseRef)
		return err
	})
	for _, e := range all {
		if err != nil {
			return err
		}
		if e.State != Refused {
			continue
		}
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			n, err := leaveEntry.Exec(tx, leaveArgs{ID: e.ID, State: Out, Now: tx.Micros()})
			if err != nil || n == 0 {
				return err
			}
			if err := leftEvent.Record(tx, event.Subject{ID: e.ID, RepoID: e.RepoID},
				leftData{HeadSHA: e.HeadSHA, PRID: e.PRID, Why: e.Why}); err != nil {
				return err
			}
			s.Hub.Notify(tx, event.PullTopic)
			return HeadRejected.Send(tx, ThrownOut{
				PRID: e.PRID, ActionID: e.ActionID, HeadSHA: e.HeadSHA, Reason: e.Reason, Why: e.Why, Log: e.Log,
			})
		})
	}
	return err
}
