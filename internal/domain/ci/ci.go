// Package ci is the checks of commits: a repository's own command, which a task
// runs on a box. Each check is a row here, from the task that is queued for it
// to what the command came to.
package ci

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
	"yardmaster/internal/observe"
)

// States of a check.
const (
	Queued    = "queued"
	Running   = "running"
	Passed    = "passed"
	Failed    = "failed"
	Lost      = "lost"      // it ended without a result
	Cancelled = "cancelled" // by a person, or because it is of no use any more
)

// Check is one run of a repository's own test command.
type Check struct {
	ID         string     `json:"id"`
	Repo       string     `json:"repo"`
	PRID       *string    `json:"pr_id" db:"pr_id"`
	SHA        string     `json:"sha" db:"sha"`
	Command    string     `json:"command"`
	Status     string     `json:"status" enum:"queued,running,passed,failed,lost,cancelled"`
	ExitCode   *int64     `json:"exit_code"`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
}

// Tasks is what checks ask of tasks.
type Tasks interface {
	// Check queues a task of tx.Account that runs a repository's check on a
	// commit. What it refuses is a fault.
	Check(tx *db.Tx, r repo.Ref, prID, sha string) (taskID string, err error)
}

// Needs is what New asks for.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Logger *slog.Logger
	Tasks  Tasks
}

// Service has checks run.
type Service struct{ Needs }

// New makes the service. It panics if something that it needs is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Queue has the check of a repository of tx.Account run on the head of a pull
// request. A head that comes back is checked again, in the same row. What Tasks
// refuses is a fault.
func (s *Service) Queue(tx *db.Tx, r repo.Ref, prID, sha string) error {
	taskID, err := s.Tasks.Check(tx, r, prID, sha)
	if err != nil {
		return err
	}
	_, err = insert.Exec(tx, insertArgs{
		ID: id.New(), AccountID: tx.Account, RepoID: r.ID, PRID: prID, SHA: sha,
		Command: r.Policy.Checks.Command, Status: Queued, TaskID: taskID, CreatedAt: tx.Micros(),
	})
	return err
}

// Result is the outcome of a check, for those who mend what it found.
type Result struct {
	Command  string
	ExitCode *int64 // nil: the command was never run to its end
	Output   string // its end
}

// Of answers what came of the check of a head; false if there was none.
func Of(tx *db.Tx, prID, sha string) (Result, bool, error) { return resultOf.Maybe(tx, prID, sha) }

// Moved tells that the task of a check of tx.Account runs, or waits again.
func (s *Service) Moved(tx *db.Tx, taskID string, running bool) error {
	c, ok, err := byTask.Maybe(tx, tx.Account, taskID)
	if err != nil || !ok {
		return err
	}
	if !running {
		_, err := queue.Exec(tx, tx.Account, taskID)
		return err
	}
	n, err := run.Exec(tx, tx.Account, taskID, tx.Micros())
	if err != nil || n == 0 {
		return err
	}
	return runningEvent.Record(tx, event.Subject{ID: c.ID, RepoID: c.RepoID}, begunData{SHA: c.SHA})
}

// Outcome is how the task of a check ended.
type Outcome struct {
	TaskID, RunID, BoxID string
	ExitCode             *int // nil: the command was never run to its end
	Output               string
	Why                  string // without an exit code: why there is none
	Cancelled            bool   // by a person, or because nobody needs it any more
}

// status is the state of a check with the outcome.
func (o Outcome) status() string {
	switch {
	case o.Cancelled:
		return Cancelled
	case o.ExitCode == nil:
		return Lost
	case *o.ExitCode == 0:
		return Passed
	}
	return Failed
}

// Finish records the end of a check of tx.Account, once, and sends Ended.
func (s *Service) Finish(tx *db.Tx, o Outcome) error {
	c, ok, err := byTask.Maybe(tx, tx.Account, o.TaskID)
	if err != nil || !ok {
		return err
	}
	status := o.status()
	if n, err := end.Exec(tx, endArgs{
		ID: c.ID, Status: status, RunID: o.RunID, BoxID: o.BoxID, ExitCode: o.ExitCode, Output: o.Output, FinishedAt: tx.Micros(),
	}); err != nil || n == 0 {
		return err // another node was faster
	}
	about := event.Subject{ID: c.ID, RepoID: c.RepoID}
	if err := endedEvents[status].Record(tx, about, endedData{ExitCode: o.ExitCode, SHA: c.SHA}); err != nil {
		return err
	}
	return Ended.Send(tx, End{PRID: c.PRID, RepoID: c.RepoID, SHA: c.SHA, Passed: status == Passed, ExitCode: o.ExitCode, Why: o.Why})
}

// sweep is how often checks are looked for whose tasks ended without a result.
const sweep = 10 * time.Second

// Loop ends checks whose tasks ended without a result, until ctx ends. Any node
// may run it. What fails is logged and tried again.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "ci.sweep", event.PullTopic, sweep, s.Pass)
	return nil
}

// Pass ends the checks that are lost by now. What fails for one keeps no other
// from its turn.
func (s *Service) Pass(ctx context.Context) {
	var all []lostRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = lost.All(tx)
		return err
	})
	if err != nil {
		s.complain(ctx, err)
	}
	for _, l := range all {
		err := s.DB.Write(db.WithAccount(ctx, l.AccountID), func(tx *db.Tx) error {
			return s.Finish(tx, Outcome{TaskID: l.TaskID, Why: "the check could not be run: " + l.Why, Cancelled: l.Cancelled})
		})
		if err != nil {
			s.complain(ctx, err, slog.String("id", l.TaskID))
		}
	}
}

func (s *Service) complain(ctx context.Context, err error, more ...any) {
	observe.Failed(ctx, err)
	if ctx.Err() == nil {
		s.Logger.ErrorContext(ctx, "end a lost check", append(more, slog.Any("error", err))...)
	}
}
