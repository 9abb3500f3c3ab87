// Package standin stands in for the domains that tasks and their queue ask, in tests and
// measurements that need tasks but not the whole program: budgets are never short, no
// task waits for a person, and no task is in the way of another. A test embeds Tasks
// and overrides the methods that it is about.
package standin

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
)

// Others is what tasks and their queue ask other domains, besides repositories.
type Others interface {
	task.Templates
	task.Related
	queue.Templates
	queue.Related
	queue.Commits
}

// Services makes the services of tasks and of their queue on d, and has the queue count
// the tasks. Call it once for each handle of a database: otherwise the queue counts
// every task twice.
func Services(d *db.DB, hub *event.Hub, repos task.Repos, others Others) (*task.Service, *queue.Service) {
	task.QueueChanged.On(d, queue.Count)
	q := queue.New(queue.Needs{
		DB: d, Hub: hub, Most: task.Uncapped, DefaultTemplate: "default", Repos: repos, Templates: others, Related: others,
		Commits: others,
	})
	return task.New(task.Needs{Tracker: task.NoTracker{},
		DB: d, Hub: hub, DefaultTemplate: "default", Repos: repos, Templates: others, Related: others, Queue: q,
	}), q
}

// Capped returns services like tasks and its queue q, with at most that many pending
// tasks for an account.
func Capped(tasks *task.Service, q *queue.Service, most int64) (*task.Service, *queue.Service) {
	of := q.Needs
	of.Most = most
	capped := queue.New(of)
	n := tasks.Needs
	n.Queue = capped
	return task.New(n), capped
}

// Tasks implements Others, and those methods of task.Repos that need no repository.
type Tasks struct {
	// Agent is the agent of every template.
	Agent string
	// Places is how many agents an account may run at once.
	Places int64
}

// Exists is true for every name of a template.
func (Tasks) Exists(*db.Tx, string, string) (bool, error) { return true, nil }

// Need returns the agent, for every name of a template.
func (t Tasks) Need(*db.Tx, string, string) (queue.Need, bool, error) {
	return queue.Need{Agent: t.Agent}, true, nil
}

// Needs returns Need for each name.
func (t Tasks) Needs(_ *db.Tx, _ string, names []string) (map[string]queue.Need, error) {
	out := map[string]queue.Need{}
	for _, name := range names {
		out[name] = queue.Need{Agent: t.Agent}
	}
	return out, nil
}

// Seats returns Places for every account.
func (t Tasks) Seats(*db.Tx, string) (int64, error) { return t.Places, nil }

// Spent returns the costs of the sessions.
func (Tasks) Spent(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	return measure.SpentOn(tx, taskIDs)
}

// SetAside returns the amounts that the budgets have reserved.
func (Tasks) SetAside(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	return budget.SetAside(tx, taskIDs)
}

// Stops returns nothing: no budget stops a task.
func (Tasks) Stops(*db.Tx, []string) ([]task.Stop, error) { return nil, nil }

// Wants returns nothing: no task waits for a person.
func (Tasks) Wants(*db.Tx, []string) ([]task.Want, error) { return nil, nil }

// Parked returns nothing: no run waits for a person.
func (Tasks) Parked(*db.Tx) ([]string, error) { return nil, nil }

// PullNeeds returns nothing: no pull request needs a person.
func (Tasks) PullNeeds(*db.Tx, []string) (map[string]task.PullNeed, error) { return nil, nil }

// PullWaits returns nothing: no pull request waits for a limit, or for room.
func (Tasks) PullWaits(*db.Tx, []string) (map[string]task.PullWait, error) { return nil, nil }

// PullOpen returns false: no pull request is open.
func (Tasks) PullOpen(*db.Tx, string) (bool, error) { return false, nil }

// PullHead returns "": no pull request is open.
func (Tasks) PullHead(*db.Tx, string) (string, error) { return "", nil }

// InPlan returns nil: no task is part of a plan.
func (Tasks) InPlan(*db.Tx, *task.Row) (*task.Plan, error) { return nil, nil }

// AskExists returns false: there are no asks.
func (Tasks) AskExists(*db.Tx, string) (bool, error) { return false, nil }

// Endings returns nothing: no task has been tried.
func (Tasks) Endings(*db.Tx, string) ([]task.Ending, error) { return nil, nil }

// Activities returns nothing: no run has called a tool.
func (Tasks) Activities(*db.Tx, []string) (map[string]string, error) { return nil, nil }

// Pulse returns nil: no task has been tried.
func (Tasks) Pulse(*db.Tx, string) (*task.Pulse, error) { return nil, nil }

// Changes returns nothing: no commit changes a file.
func (Tasks) Changes(context.Context, string, string) ([]string, error) { return nil, nil }

// Conflicts returns nothing: no two commits conflict.
func (Tasks) Conflicts(context.Context, string, string, string) ([]string, error) { return nil, nil }

// Repos implements task.Repos with one function.
type Repos func(tx *db.Tx, id string) (task.Repo, error)

// ByName finds no repository.
func (Repos) ByName(*db.Tx, string, string) (task.Repo, bool, error) {
	return task.Repo{}, false, nil
}

// ByID calls the function.
func (r Repos) ByID(tx *db.Tx, id string) (task.Repo, error) { return r(tx, id) }

// ByIDs calls the function for each id.
func (r Repos) ByIDs(tx *db.Tx, ids []string) (map[string]task.Repo, error) {
	out := map[string]task.Repo{}
	for _, id := range ids {
		found, err := r(tx, id)
		if err != nil {
			return nil, err
		}
		out[id] = found
	}
	return out, nil
}
