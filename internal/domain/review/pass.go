package review

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// sweep is the time between two passes when nothing has happened. A step that fails is
// tried again maxTries times.
const (
	sweep    = 10 * time.Second
	maxTries = 8
)

// Loop carries on with reviews until ctx ends. Several nodes may run Loop at once. A
// failure is logged, and the next pass tries again.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "reviews.sweep", topic, sweep, s.Pass)
	return nil
}

// Pass takes the steps that are due. A failure of one run does not keep Pass from the
// others.
func (s *Service) Pass(ctx context.Context) {
	var steps, stops, carries []due
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if steps, err = stepsDue.All(tx, tx.Micros()); err != nil {
			return err
		}
		if carries, err = carriesDue.All(tx, tx.Micros()); err != nil {
			return err
		}
		stops, err = stopsDue.All(tx)
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "read what is due", err)
	}
	for _, d := range steps {
		in := db.WithAccount(ctx, d.AccountID)
		step := s.sort
		if d.State == Queued {
			step = s.dispatch
		}
		if err := step(in, d); err != nil {
			observe.Complain(ctx, s.Logger, "carry on with a review", err, slog.String("id", d.ID))
			s.again(in, d, err)
		}
	}
	for _, d := range carries {
		in := db.WithAccount(ctx, d.AccountID)
		if err := s.carry(in, d); err != nil {
			observe.Complain(ctx, s.Logger, "follow findings to a head", err, slog.String("id", d.ID))
			s.carryAgain(in, d)
		}
	}
	for _, d := range stops {
		if err := s.stop(db.WithAccount(ctx, d.AccountID), d); err != nil {
			observe.Complain(ctx, s.Logger, "stop a review", err, slog.String("id", d.ID))
		}
	}
}

// locked locks the pull request of a run and reads both; false if the run is not in the
// state any more. A run whose head is not the present one is ended.
func (s *Service) locked(tx *db.Tx, d due) (run Run, p Pull, r repo.Ref, ok bool, err error) {
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

// dispatch queues the finder of a run. If the queue is full, the next pass tries again.
func (s *Service) dispatch(ctx context.Context, d due) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		run, p, r, ok, err := s.locked(tx, d)
		if err != nil || !ok || run.TaskID != nil {
			return err
		}
		return s.queue(tx, r, p, &run)
	})
}

// queue queues the finder of a run.
func (s *Service) queue(tx *db.Tx, r repo.Ref, p Pull, run *Run) error {
	taskID, err := s.Tasks.Queue(tx, r, Pass{PRID: p.ID, Title: findTitle(p), Problem: findProblem(r, p, *run), Schema: findingsSchema,
		Template: run.Template, HeadSHA: run.HeadSHA, RequestedBy: run.RequestedBy})
	if full(err) {
		_, err := waitForRoom.Exec(tx, run.ID, tx.Now.Add(time.Minute))
		return err
	}
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

// again puts off a step that failed, or ends the run.
func (s *Service) again(ctx context.Context, d due, cause error) {
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		run, p, _, ok, err := s.locked(tx, d)
		if err != nil || !ok {
			return err
		}
		if run.Tries+1 >= maxTries {
			return s.end(tx, run, p, ending{State: Failed, Note: "the code could not be read at its host"})
		}
		_, err = putOff.Exec(tx, run.ID, tx.Now.Add(min(time.Second<<run.Tries, longestWait)))
		return err
	})
	if err != nil && ctx.Err() == nil {
		observe.Complain(ctx, s.Logger, "put off a review", errors.Join(err, cause), slog.String("id", d.ID))
	}
}

// carryAgain puts off following findings to a head. In the end they stay on the one they were
// on, and the next review follows them.
func (s *Service) carryAgain(ctx context.Context, d due) {
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		run, ok, err := runByID.Maybe(tx, tx.Account, d.ID)
		if err != nil || !ok {
			return err
		}
		if run.Tries+1 >= maxTries {
			_, err = setCarried.Exec(tx, run.ID)
			return err
		}
		_, err = putOff.Exec(tx, run.ID, tx.Now.Add(min(time.Second<<run.Tries, longestWait)))
		return err
	})
	if err != nil && ctx.Err() == nil {
		observe.Complain(ctx, s.Logger, "put off following findings", err, slog.String("id", d.ID))
	}
}

// stop cancels the tasks of a run that has ended before them.
func (s *Service) stop(ctx context.Context, d due) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		run, ok, err := runByID.Maybe(tx, tx.Account, d.ID)
		if err != nil || !ok {
			return err
		}
		for _, taskID := range []*string{run.TaskID, run.VerifyTaskID} {
			if taskID == nil {
				continue
			}
			if err := s.Tasks.Stop(tx, *taskID); err != nil {
				return err
			}
		}
		_, err = setStopped.Exec(tx, run.ID)
		return err
	})
}
