package review

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// retry is how a step that failed is taken again.
var retry = due.Ladder{First: time.Second, Longest: 5 * time.Minute, Tries: 8}

// busy is how long a step waits for room in the queue, or for a task that could not be stopped.
const busy = time.Minute

// step is what the queue "reviews" does next to a run.
type step int

const (
	none    step = iota
	find         // queue its finder
	arrange      // sort what the finder has found
	follow       // follow earlier findings to its head
	halt         // stop its tasks
)

// next is the step that a run waits for.
func (r Run) next() step {
	switch {
	case r.Stop:
		return halt
	case r.Carry:
		return follow
	case r.EndedAt != nil:
		return none
	case r.State == Queued && r.TaskID == nil:
		return find
	case r.State == Sorting:
		return arrange
	}
	return none
}

// wake has the next step of a run of tx.Account taken now, also if another one waits for a try.
func (s *Service) wake(tx *db.Tx, runID string) {
	s.runs.Add(tx, runID, due.Entry{Account: tx.Account})
	s.runs.Hurry(tx, runID)
}

func load(tx *db.Tx, runID string) (Run, bool, error) {
	run, ok, err := runByID.Maybe(tx, tx.Account, runID)
	return run, ok && run.next() != none, err
}

// work takes the next step of a run: what is read outside of a transaction comes first.
func (s *Service) work(ctx context.Context, j due.Job[Run]) due.Outcome {
	run := j.Row
	record, err := func(tx *db.Tx) error { return s.dispatch(tx, run) }, error(nil)
	switch run.next() {
	case halt:
		record = func(tx *db.Tx) error { return s.halt(tx, run) }
	case arrange:
		record, err = s.sort(ctx, run)
	case follow:
		record, err = s.carry(ctx, run)
	}
	if err == nil {
		err = s.DB.Write(ctx, func(tx *db.Tx) error { j.Renew(tx); return record(tx) })
	}
	if full(err) {
		return due.Wait(busy)
	}
	if err != nil {
		observe.Complain(ctx, s.Logger, "carry on with a review", err, slog.String("id", run.ID))
		return due.Again(err)
	}
	return due.Done(nil)
}

// giveUp records that the next step of a run is not taken. Findings that were not followed stay
// on the head they were on, and the next review follows them.
func (s *Service) giveUp(tx *db.Tx, runID, why string) error {
	run, ok, err := runByID.Maybe(tx, tx.Account, runID)
	if err != nil || !ok {
		return err
	}
	switch run.next() {
	case halt:
		return errors.New(why) // it is set aside, for somebody to look at
	case follow:
		_, err := setCarried.Exec(tx, run.ID)
		return err
	}
	run, p, _, ok, err := s.locked(tx, run)
	if err != nil || !ok {
		return err
	}
	return s.end(tx, run, p, ending{State: Failed, Note: "the code could not be read at its host"})
}

// locked locks the pull request of a run and reads both; false if the run is not in the
// state any more. A run whose head is not the present one is ended.
func (s *Service) locked(tx *db.Tx, d Run) (run Run, p Pull, r repo.Ref, ok bool, err error) {
	p, known, err := s.Pulls.Lock(tx, d.PRID)
	if err != nil {
		return run, p, r, false, err
	}
	run, ok, err = runByID.Maybe(tx, tx.Account, d.ID)
	if err != nil || !ok || run.EndedAt != nil || run.State != d.State {
		return run, p, r, false, err
	}
	if r, ok, err = repo.ByID(tx, run.RepoID); err != nil {
		return run, p, r, false, err
	}
	why := useless(run, p, known)
	if why == "" && (!ok || !r.Enabled) {
		why = "the repository is not enabled"
	}
	if why != "" {
		return run, p, r, false, s.end(tx, run, p, ending{State: Cancelled, Note: why, Stop: true})
	}
	return run, p, r, true, nil
}

// useless tells why nothing needs a run any more; "" if it is needed. known tells that there
// is a pull request p.
func useless(run Run, p Pull, known bool) string {
	switch {
	case !known:
		return noteOver
	case !p.Open:
		return p.closed()
	case p.HeadSHA != run.HeadSHA:
		return "the branch has a newer head"
	}
	return ""
}

// dispatch queues the finder of a run.
func (s *Service) dispatch(tx *db.Tx, run Run) error {
	run, p, r, ok, err := s.locked(tx, run)
	if err != nil || !ok || run.TaskID != nil {
		return err
	}
	return s.queue(tx, r, p, &run)
}

// queue queues the finder of a run.
func (s *Service) queue(tx *db.Tx, r repo.Ref, p Pull, run *Run) error {
	taskID, err := s.Tasks.Queue(tx, r, Pass{PRID: p.ID, Title: findTitle(p), Problem: findProblem(r, p, *run), Schema: findingsSchema,
		Template: run.Template, HeadSHA: run.HeadSHA, RequestedBy: run.RequestedBy})
	if err != nil {
		return err
	}
	run.TaskID = &taskID
	_, err = setTask.Exec(tx, run.ID, taskID)
	return err
}

// full tells whether the queue did not take a task now.
func full(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Kind != fault.Internal
}

// halt stops the tasks of a run that has ended before them.
func (s *Service) halt(tx *db.Tx, run Run) error {
	for _, taskID := range []*string{run.TaskID, run.VerifyTaskID} {
		if taskID == nil {
			continue
		}
		if err := s.Tasks.Stop(tx, *taskID); err != nil {
			return err
		}
	}
	_, err := setStopped.Exec(tx, run.ID)
	return err
}
