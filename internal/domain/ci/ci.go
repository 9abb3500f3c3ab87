// Package ci is the checks of commits. A check runs the repository's own command, by
// a task on a box. Its row begins when the task is queued, and ends with the result of
// the command.
//
//   - log.go: the archive of whole outputs, for three days
//   - report.go: how a host is told of a check that boxes run
//   - hosted.go: the checks that a host has of a commit
//   - evidence.go: what is known of failed jobs at hosts
//   - judge.go: which failures are run again, and which are repaired
//   - flakes.go: the failures that come and go, for people
package ci

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
	"yardmaster/internal/observe"
)

// State is the state of a check.
type State string

// States of a check.
const (
	Queued    = "queued"
	Running   = "running"
	Passed    = "passed"
	Failed    = "failed"
	Lost      = "lost"      // the check ended without a result
	Cancelled = "cancelled" // by a person, or because nothing needs the check any more
)

// Values lists all states.
func (State) Values() []string { return []string{Queued, Running, Passed, Failed, Lost, Cancelled} }

// Check is one run of a repository's own test command.
type Check struct {
	_            struct{}   `doc:"One run of the check of a repository, on a commit." schema:"Check"`
	ID           string     `json:"id" format:"uuid" doc:"id of the check; a head that comes back is checked again under the same id"`
	Repo         string     `json:"repo" doc:"owner/name"`
	PRID         *string    `json:"pr_id" format:"uuid" db:"pr_id" doc:"the pull request whose head it checks; null without one"`
	SHA          string     `json:"sha" db:"sha" example:"3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b" doc:"the commit that is checked"`
	Command      string     `json:"command" example:"make test" doc:"what is run, from the policy file; it passes with exit code 0"`
	Status       State      `json:"status" example:"passed" doc:"lost: it ended without a result; cancelled: by a person, or because nothing needs it any more"`
	TaskID       *string    `json:"task_id" format:"uuid" doc:"the task that runs it"`
	RunID        *string    `json:"run_id" format:"uuid" doc:"the run that it ended with; null until then, and if none brought it to its end"`
	BoxID        *string    `json:"box_id" format:"uuid" doc:"the box that it ended on; null as run_id"`
	ExitCode     *int64     `json:"exit_code" example:"0" doc:"what the command ended with; null: it was not run to its end"`
	LogExpiresAt *time.Time `json:"log_expires_at" example:"null" doc:"until when ci.log_url answers the whole output; null while it is not archived, and afterwards"`
	CreatedAt    time.Time  `json:"created_at" doc:"when it was queued"`
	StartedAt    *time.Time `json:"started_at" doc:"when a box began; null before"`
	FinishedAt   *time.Time `json:"finished_at" doc:"when it ended; null before"`
}

// Tasks is the part of tasks that checks need.
type Tasks interface {
	// Check queues a task of tx.Account that runs the check of a repository on a
	// commit; prID is "" if that is no head of a pull request. It fails with a fault if
	// the queue does not take the task.
	Check(tx *db.Tx, r repo.Ref, prID, sha string) (taskID string, err error)
	// Stop cancels a task unless it is over.
	Stop(tx *db.Tx, taskID string) error
}

// Logs is the part of runs that the archive of outputs needs.
type Logs interface {
	// Output answers a piece of the output of a run of tx.Account, after the event
	// number after, and the number to go on with; next is after at the end.
	Output(tx *db.Tx, runID string, after int64) (text string, next int64, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Hub     *event.Hub
	Due     *due.Kernel
	Logger  *slog.Logger
	Hosts   *codehost.Hosts
	Tasks   Tasks
	Logs    Logs
	Objects blob.Store // for the outputs of checks
	Pulls   Pulls
	Intents *intent.Service
}

// Service queues checks and records their results.
type Service struct {
	Needs
	headQueue, reportQueue, logQueue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.headQueue = due.Register(n.Due, due.Queue[headRow]{
		Name: "host_heads", Retry: due.Ladder{First: readAgain, Longest: readAgain},
		Load: loadHead, Work: s.readHead, Open: func(tx *db.Tx, most int) ([]due.Open, error) { return openHeads.All(tx, most) },
	})
	s.reportQueue = due.Register(n.Due, due.Queue[struct{}]{
		Name: "ci_reports", Retry: due.Ladder{First: reportEvery, Longest: reportEvery},
		Load: func(*db.Tx, string) (row struct{}, ok bool, err error) { return row, true, nil }, // a try reads it
		Work: s.readReport, Open: func(tx *db.Tx, most int) ([]due.Open, error) { return openReports.All(tx, most) },
	})
	s.logQueue = due.Register(n.Due, due.Queue[dueLog]{
		Name: "ci_logs", Retry: archiving, Load: loadLog, Work: s.look,
		Open: func(tx *db.Tx, most int) ([]due.Open, error) { return openLogs.All(tx, most) },
	})
	rerunAtHost.Handle(n.Intents, rerunner{s})
	reportKind.Handle(n.Intents, reporter{s})
	return s
}

// Queue queues the check of a repository of tx.Account for the head of a pull request,
// or, without one (""), for a group of a merge queue. A head that comes back is checked
// again, in the same row. Queue fails with the fault of Tasks.
func (s *Service) Queue(tx *db.Tx, r repo.Ref, prID, sha string) error {
	taskID, err := s.Tasks.Check(tx, r, prID, sha)
	if err != nil {
		return err
	}
	if _, err = insert.Exec(tx, insertArgs{
		ID: id.New(), AccountID: tx.Account, RepoID: r.ID, PRID: prID, SHA: sha,
		Command: r.Policy.Checks.Command, Status: Queued, TaskID: taskID, CreatedAt: tx.Micros(),
	}); err != nil {
		return err
	}
	c, err := byTask.One(tx, tx.Account, taskID)
	if err != nil {
		return err
	}
	return s.report(tx, r, c.ID, true)
}

// Result is the result of a check, for the tasks that repair a head.
type Result struct {
	Command  string
	ExitCode *int64 // nil: the command was never run to its end
	Output   string // the end of the output
}

// Of answers the result of the check of a head; false if there was no check.
func Of(tx *db.Tx, prID, sha string) (Result, bool, error) { return resultOf.Maybe(tx, prID, sha) }

// Moved records that the task of a check of tx.Account runs, or waits again. A task of
// no check changes nothing.
func (s *Service) Moved(tx *db.Tx, taskID string, running bool) error {
	c, ok, err := byTask.Maybe(tx, tx.Account, taskID)
	if err != nil || !ok {
		return err
	}
	if !running {
		n, err := queue.Exec(tx, tx.Account, taskID)
		if err != nil || n == 0 {
			return err
		}
		return s.reportChange(tx, c.RepoID, c.ID)
	}
	n, err := run.Exec(tx, tx.Account, taskID, tx.Micros())
	if err != nil || n == 0 {
		return err
	}
	if err := s.reportChange(tx, c.RepoID, c.ID); err != nil {
		return err
	}
	return runningEvent.Record(tx, event.Subject{ID: c.ID, RepoID: c.RepoID}, begunData{SHA: c.SHA})
}

// Outcome is the end of the task of a check.
type Outcome struct {
	TaskID, RunID, BoxID string
	ExitCode             *int // nil: the command was never run to its end
	Output               string
	Why                  string // the reason why there is no exit code
	Cancelled            bool   // by a person, or because nothing needs the check any more
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
	if err := s.reportChange(tx, c.RepoID, c.ID); err != nil {
		return err
	}
	if o.RunID != "" {
		if err := s.archive(tx, o.RunID); err != nil {
			return err
		}
	}
	about := event.Subject{ID: c.ID, RepoID: c.RepoID}
	if err := endedEvents[status].Record(tx, about, endedData{ExitCode: o.ExitCode, SHA: c.SHA}); err != nil {
		return err
	}
	return Ended.Send(tx, End{PRID: c.PRID, RepoID: c.RepoID, SHA: c.SHA, Passed: status == Passed, ExitCode: o.ExitCode, Why: o.Why})
}

// sweep is the time between two searches for checks whose tasks ended without a result.
const sweep = 10 * time.Second

// Loop ends checks whose tasks ended without a result, and forgets old evidence, until ctx
// ends. Several nodes may run Loop at once. A failure is logged, and
// the next pass tries again.
func (s *Service) Loop(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { s.Hub.Sweep(ctx, "ci.sweep", event.PullTopic, sweep, s.Pass) })
	all.Go(func() { s.Hub.Sweep(ctx, "ci.tidy", event.PullTopic+".tidy", tidyEvery, s.tidy) })
	all.Wait()
	return nil
}

// Pass ends the checks whose tasks have ended without a result. A failure for one check
// does not keep Pass from the others.
func (s *Service) Pass(ctx context.Context) {
	var all []lostRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = lost.All(tx)
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "end a lost check", err)
	}
	for _, l := range all {
		err := s.DB.Write(db.WithAccount(ctx, l.AccountID), func(tx *db.Tx) error {
			return s.Finish(tx, Outcome{TaskID: l.TaskID, Why: "the check could not be run: " + l.Why, Cancelled: l.Cancelled})
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "end a lost check", err, slog.String("id", l.TaskID))
		}
	}
}
