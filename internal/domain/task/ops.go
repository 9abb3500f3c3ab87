package task

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/leak"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Tasks"

// Ops are the capabilities of the queue.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadTasks), policy.Require(policy.WriteTasks)
	return []op.Op{
		op.New(op.Row{ID: "task.create", Method: "POST", Path: "/v1/tasks", Group: group, Rule: write, Status: 202,
			Summary: "Dispatch one scoped task",
			Refuses: []op.Refusal{{Status: 403, Slug: "no-capacity"}, {Status: 404, Slug: "not-found"}, {Status: 409, Slug: "repo_disabled"}, {Status: 422, Slug: "problem-is-only-link"},
				{Status: 422, Slug: "sink-not-configured"}, {Status: 429, Slug: "queue-full"}}}, s.create),
		op.New(op.Row{ID: "project.setup", Method: "POST", Path: "/v1/repos/{owner}/{repo}/setup", Group: "Repositories", Rule: write, Status: 202,
			Summary: "Send an agent to look a repository over and give it its base: scripts, tools and notes for agents",
			Refuses: []op.Refusal{{Status: 403, Slug: "no-capacity"}, {Status: 404, Slug: "not-found"}, {Status: 429, Slug: "queue-full"}}}, s.setup),
		op.New(op.Row{ID: "task.list", Method: "GET", Path: "/v1/tasks", Group: group, Rule: read,
			Summary: "List the account's tasks, newest first; q searches the title, 20,000 tasks a page, which may be short or empty and still have a next", Paging: paging()}, s.list),
		op.New(op.Row{ID: "task.stalls", Method: "GET", Path: "/v1/queue/status", Group: group, Rule: read,
			Summary: "Every reason that holds a pending task, and what clears it"}, s.stalls),
		op.New(op.Row{ID: "task.run_status", Method: "GET", Path: "/v1/tasks/{id}", Group: group, Rule: read,
			Summary: "One task: its place in the queue, its holds, its run"}, s.get),
		op.New(op.Row{ID: "task.reassign", Method: "POST", Path: "/v1/tasks/{id}/reassign", Group: group, Rule: write,
			Summary: "Take a task from its box and queue it again",
			Refuses: []op.Refusal{{Status: 409, Slug: "task_terminal"}}}, s.reassign),
		op.New(op.Row{ID: "task.cancel", Method: "POST", Path: "/v1/tasks/{id}/cancel", Group: group, Rule: write,
			Summary: "Cancel a task; its box is interrupted",
			Refuses: []op.Refusal{{Status: 409, Slug: "not_cancellable_review"}}}, s.cancel),
		op.New(op.Row{ID: "task.redispatch", Method: "POST", Path: "/v1/tasks/{id}/redispatch", Group: group, Rule: write,
			Summary: "Give a failed, held or stuck task fresh attempts",
			Refuses: []op.Refusal{{Status: 409, Slug: "already_pending"}, {Status: 409, Slug: "operator_cancelled"}, {Status: 409, Slug: "already_shipped"},
				{Status: 409, Slug: "in_flight"}, {Status: 409, Slug: "dependency_failed"}}}, s.redispatch),
	}
}

func paging() *op.Paging {
	var states []string
	for _, st := range Statuses() {
		states = append(states, string(st))
	}
	return &op.Paging{Default: 50, Max: 200, Q: true, Filters: map[string][]string{
		"status": states,
		"kind":   {KindWork, KindScout, KindSetup, KindReview, KindBabysit, KindKB, KindDevops, KindCI},
		"repo":   nil,
		"label":  nil, // name=value
	}}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (page op.Page[Task], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var repoID string
		if name := in.Want("repo"); name != "" {
			owner, repo, _ := strings.Cut(name, "/")
			r, ok, err := s.RepoByName(tx, owner, repo)
			if err != nil {
				return err
			}
			if !ok {
				page = op.NewPage(in.PageIn, []Task{}, nil)
				return nil
			}
			repoID = r.ID
		}
		rows, end, err := list(tx, in.PageIn, repoID)
		if err != nil {
			return err
		}
		shown := op.NewPage(in.PageIn, rows, pageKey)
		if page.NextCursor = shown.NextCursor; end != nil {
			page.NextCursor = in.At(end)
		}
		page.Data, err = s.view(tx, shown.Data)
		return err
	})
	return page, err
}

type idIn struct {
	ID string `json:"id"`
}

// TaskDetail is one task with the pulse of its newest run.
type TaskDetail struct {
	Task
	Run *TaskPulse `json:"run" doc:"null until a box has claimed the task"`
}

// TaskPulse tells how a run is doing.
type TaskPulse struct {
	ID             string     `json:"id"`
	State          string     `json:"state"`
	Outcome        *string    `json:"outcome"`
	Agent          string     `json:"agent"`
	Model          *string    `json:"model"`
	Isolation      *string    `json:"isolation"`
	LastSeq        int64      `json:"last_seq"`
	ProgressAt     time.Time  `json:"progress_at" doc:"of the newest event"`
	LeaseExpiresAt *time.Time `json:"lease_expires_at" doc:"null once it has ended"`
}

func (s *Service) get(ctx context.Context, in idIn) (out TaskDetail, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		t, err := find(tx, in.ID, false)
		if err != nil {
			return err
		}
		shown, err := s.view(tx, []Row{t})
		if err != nil {
			return err
		}
		out.Task = shown[0]
		if s.Pulse != nil {
			out.Run, err = s.Pulse(tx, t.ID)
		}
		return err
	})
	return out, err
}

// TaskReassigned is the answer of task.reassign.
type TaskReassigned struct {
	TaskID     string `json:"task_id"`
	Status     Status `json:"status"`
	Reassigned bool   `json:"reassigned" doc:"false when no box held it"`
}

func (s *Service) reassign(ctx context.Context, in idIn) (out TaskReassigned, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, err := find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if t.Status.Terminal() {
			return fault.Reason("task_terminal", "The task is "+string(t.Status)+"; there is nothing to reassign.")
		}
		moved := t.Status.InFlight()
		if moved {
			if err := s.StopRun(tx, &t, StopReassigned); err != nil {
				return err
			}
			if err := s.Requeue(tx, &t, StopReassigned); err != nil {
				return err
			}
		}
		out = TaskReassigned{t.ID, t.Status, moved}
		return nil
	})
	return out, err
}

// TaskCancelled is the answer of task.cancel.
type TaskCancelled struct {
	Kind   string `json:"kind" doc:"cancelled or already_terminal"`
	TaskID string `json:"task_id"`
	Status Status `json:"status"`
}

func (s *Service) cancel(ctx context.Context, in idIn) (out TaskCancelled, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, err := find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if t.Status.Terminal() {
			out = TaskCancelled{"already_terminal", t.ID, t.Status}
			return nil
		}
		if t.Kind == KindReview && t.PRID != nil && s.PROpen != nil {
			open, err := s.PROpen(tx, *t.PRID)
			if err != nil {
				return err
			}
			if open {
				return fault.Reason("not_cancellable_review", "This is the review of a pull request that is still open.")
			}
		}
		if err := s.Cancel(tx, &t); err != nil {
			return err
		}
		out = TaskCancelled{"cancelled", t.ID, t.Status}
		return nil
	})
	return out, err
}

// Cancel ends a locked task that is not terminal, its run, and what waits for it.
func (s *Service) Cancel(tx *db.Tx, t *Row) error {
	if err := holdBelow(tx, t); err != nil {
		return err
	}
	if t.Status.InFlight() {
		if err := s.StopRun(tx, t, StopCancelled); err != nil {
			return err
		}
	}
	if err := s.move(tx, t, Cancelled, "cancelled", nil); err != nil {
		return err
	}
	return s.failDependents(tx, t)
}

type redispatchIn struct {
	ID       string  `json:"id"`
	Guidance *string `json:"guidance,omitempty" maxLength:"2000" doc:"rides the next brief as an operator note; what looks like a secret is removed"`
}

// TaskRedispatched is the answer of task.redispatch.
type TaskRedispatched struct {
	TaskID             string       `json:"task_id"`
	Status             Status       `json:"status"`
	PriorAttempt       int64        `json:"prior_attempt"`
	SavedWIP           TaskSavedWIP `json:"saved_wip"`
	ReleasedDependents []string     `json:"released_dependents" doc:"tasks that had failed because of this one and wait again"`
	GuidanceChars      *int         `json:"guidance_chars,omitempty"`
}

// TaskSavedWIP tells what the next run resumes from.
type TaskSavedWIP struct {
	Found    bool     `json:"found"`
	SHA      *string  `json:"sha" doc:"tip of the task's own branch"`
	Paths    []string `json:"paths"`
	Failures []string `json:"failures" doc:"failure kinds of the tries so far, oldest first"`
	Ending   *string  `json:"ending" doc:"how the last try ended"`
}

func (s *Service) redispatch(ctx context.Context, in redispatchIn) (out TaskRedispatched, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, err := find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if err := redispatchable(&t); err != nil {
			return err
		}
		if err := holdBelow(tx, &t); err != nil {
			return err
		}
		if lost, status, err := lostUpstream(tx, t.ID); err != nil {
			return err
		} else if lost != "" {
			advice := "redispatch that one."
			if status == Cancelled {
				advice = "that is for good: create a task that does not depend on it."
			}
			return fault.Reason("dependency_failed", "It depends on the task "+lost+", which is "+string(status)+"; "+advice).With("depends_on", lost)
		}
		if t.Status.InFlight() {
			if err := s.StopRun(tx, &t, StopRedispatched); err != nil {
				return err
			}
		}
		out = TaskRedispatched{TaskID: t.ID, PriorAttempt: t.Attempt}
		if in.Guidance != nil {
			text := leak.Scrub(*in.Guidance)
			n := utf8.RuneCountInString(text)
			t.Guidance, out.GuidanceChars = &text, &n
		}
		if out.SavedWIP, err = s.savedWIP(tx, &t); err != nil {
			return err
		}
		released, err := s.revive(tx, &t, "redispatched", map[string]any{"prior_attempt": t.Attempt, "failure_kind": t.FailureKind})
		if err != nil {
			return err
		}
		out.ReleasedDependents = append([]string{}, released...)
		out.Status = t.Status
		return nil
	})
	return out, err
}

// redispatchable says whether a redispatch may revive t.
func redispatchable(t *Row) error {
	switch {
	case t.Status == Failed, t.Status == Held, t.Status == Running && t.Stuck:
		return nil
	case t.Status == Pending:
		return fault.Reason("already_pending", "The task is already in the queue.")
	case t.Status == Cancelled:
		return fault.Reason("operator_cancelled", "The task was cancelled; create a new one instead.")
	case t.Status.Shipped():
		return fault.Reason("already_shipped", "The task's work has shipped: it is "+string(t.Status)+". A spent pull-request ladder is revived with pr.rearm_babysit.")
	}
	return fault.Reason("in_flight", "A box is working on the task and it is not stuck; reassign or cancel it instead.")
}

func (s *Service) savedWIP(tx *db.Tx, t *Row) (TaskSavedWIP, error) {
	w := TaskSavedWIP{Found: t.WIPSHA != nil, SHA: t.WIPSHA, Paths: append([]string{}, t.WIPPaths.V...), Failures: []string{}}
	if s.Endings == nil {
		return w, nil
	}
	ends, err := s.Endings(tx, t.ID)
	for _, e := range ends {
		if e.FailureKind != nil {
			w.Failures = append(w.Failures, *e.FailureKind)
		}
		w.Ending = &e.Outcome
	}
	return w, err
}
