package plan

import (
	"context"
	"slices"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// lock locks a plan of tx.Account until the transaction ends, and reads its
// groups. The order of locks is at task.Lock. It returns the faults of find.
func lock(tx *db.Tx, planID string) (p row, n *net, err error) {
	if p, err = find(tx, planID); err != nil {
		return p, nil, err
	}
	if p.ScoutTaskID != nil {
		if _, _, err := task.Lock(tx, tx.Account, *p.ScoutTaskID); err != nil {
			return p, nil, err
		}
	}
	if p, err = selectPlan.ForUpdate().One(tx, tx.Account, p.ID); err == nil {
		n, err = readNet(tx, p.ID)
	}
	return p, n, err
}

// Approved is the answer of plan.approve.
type Approved struct {
	_       struct{} `doc:"The approved plan, and the tasks that were minted."`
	Kind    string   `json:"kind" enum:"approved,already_approved" doc:"already_approved: it had been, and nothing was minted"`
	PlanID  string   `json:"plan_id" format:"uuid" doc:"id of the plan"`
	Status  Status   `json:"status" example:"running" doc:"state of the plan after the call"`
	TaskIDs []string `json:"task_ids" format:"uuid" doc:"what the first approval minted"`
}

func (s *Service) approve(ctx context.Context, in idIn) (out Approved, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		p, n, err := lock(tx, in.PlanID)
		if err != nil {
			return err
		}
		out = Approved{Kind: "approved", PlanID: p.ID, Status: Status(n.progress(&p).status)}
		switch {
		case out.Status == Cancelled:
			return fault.Reason("plan-stopped", "All groups of the plan were stopped.")
		case p.ApprovedAt != nil:
			out.Kind, out.TaskIDs = "already_approved", p.ApprovedTasks.V
			return nil
		case len(n.groups) == 0:
			return fault.Reason("plan-drafting", "The plan has no groups yet: its scout has not come back with any.")
		}
		if out.TaskIDs, err = s.mintTasks(tx, &p, n); err != nil {
			return err
		}
		out.Status = Running
		return approvedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, tasksData{TaskIDs: out.TaskIDs})
	})
	return out, err
}

// PlanCancelled is the answer of plan.cancel. Each task is on one of the lists.
type PlanCancelled struct {
	_                 struct{} `doc:"What plan.cancel did; each task is on one of the lists."`
	PlanID            string   `json:"plan_id" format:"uuid" doc:"id of the plan"`
	Status            Status   `json:"status" example:"cancelled" doc:"state of the plan after the call; a plan that is done stays done"`
	Stopped           []string `json:"stopped" format:"uuid" doc:"tasks that were cancelled"`
	AlreadyFinished   []string `json:"already_finished" format:"uuid" doc:"tasks that were over"`
	ReviewsNotStopped []string `json:"reviews_not_stopped" format:"uuid" doc:"reviews of pull requests that are still open; they go on"`
}

func (s *Service) cancel(ctx context.Context, in idIn) (out PlanCancelled, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		p, n, err := lock(tx, in.PlanID)
		if err != nil {
			return err
		}
		if out, err = s.stop(tx, &p, n); err != nil {
			return err
		}
		return cancelledEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, cancelledData{
			AlreadyFinished: out.AlreadyFinished, ReviewsNotStopped: out.ReviewsNotStopped, Status: string(out.Status),
			Stopped: out.Stopped,
		})
	})
	return out, err
}

// stop cancels the tasks of a locked plan that are not over, and closes its
// groups. A plan that is done stays done.
func (s *Service) stop(tx *db.Tx, p *row, n *net) (PlanCancelled, error) {
	out := PlanCancelled{PlanID: p.ID, Stopped: []string{}, AlreadyFinished: []string{}, ReviewsNotStopped: []string{}}
	end := func(taskID string) error {
		t, ok, err := task.Lock(tx, tx.Account, taskID)
		switch {
		case err != nil || !ok:
			return err
		case t.Status.Terminal():
			out.AlreadyFinished = append(out.AlreadyFinished, t.ID)
			return nil
		case t.Kind == task.KindReview && t.PRID != nil:
			is, err := s.Pulls.IsOpen(tx, *t.PRID)
			if err != nil {
				return err
			}
			if is {
				out.ReviewsNotStopped = append(out.ReviewsNotStopped, t.ID)
				return nil
			}
		}
		out.Stopped = append(out.Stopped, t.ID)
		return s.Tasks.Cancel(tx, &t)
	}
	children, err := task.PullTasksOfPlan(tx, p.ID)
	if err != nil {
		return out, err
	}
	if _, err := task.LockAll(tx, tx.Account, children); err != nil {
		return out, err
	}
	if _, err := n.lockTasks(tx, nil); err != nil {
		return out, err
	}
	done := n.progress(p).status == Done
	// Dependent tasks are cancelled before the tasks that they depend on, so
	// that none fails because of its dependency.
	order := n.order()
	slices.Reverse(order)
	for _, g := range order {
		is := n.state(g)
		for i := range n.tasks[g.ID] {
			if err := end(n.tasks[g.ID][i].ID); err != nil {
				return out, err
			}
		}
		if !settled(is) {
			if _, err := closeGroup.Exec(tx, tx.Account, g.ID, Stopped); err != nil {
				return out, err
			}
		}
	}
	for i := range n.scouts {
		if err := end(n.scouts[i].ID); err != nil {
			return out, err
		}
	}
	for _, c := range children {
		if err := end(c); err != nil {
			return out, err
		}
	}
	s.touch(tx, p.ID)
	out.Status = Done
	if done {
		return out, nil
	}
	out.Status = Cancelled
	if p.CancelledAt == nil {
		p.CancelledAt = &tx.Now
		_, err = cancelPlan.Exec(tx, tx.Account, p.ID, p.CancelledAt)
	}
	return out, err
}
