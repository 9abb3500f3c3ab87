package queue

import (
	"yardmaster/internal/api/op"
	"yardmaster/internal/policy"
)

// Ops returns the capabilities of the queue.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID: "task.stalls", Method: "GET", Path: "/v1/queue/status", Group: "Tasks", Rule: policy.Require(policy.ReadTasks),
			Summary: "Every reason that holds a pending task, or a held one for want of money, and what clears it",
			Doc: "Counts the pending tasks of the account by what keeps boxes from claiming them. A task with several reasons " +
				"is counted under each of them; one with none is in claimable.",
			Paging: &op.Paging{Default: 100, Max: 200},
		}, s.stalls),
		op.New(op.Row{
			ID: "task.history", Method: "GET", Path: "/v1/queue/history", Group: "Tasks", Rule: policy.Require(policy.ReadTasks),
			Summary: "The queue as it was: every try at a task, with its waits, in the order of the claims",
			Doc:     "What task.simulate plays with other boxes or another policy.",
			Paging:  &op.Paging{Default: 100, Max: 1000},
		}, s.history),
	}
}
