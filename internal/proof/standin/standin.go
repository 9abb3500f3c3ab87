// Package standin answers for the domains that tasks ask, in tests and
// measurements of others that need tasks and not the whole program: there is money
// enough, nobody is waited for, and nothing is in the way. A test embeds Tasks and
// answers itself what it is about.
package standin

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
)

// Tasks implements task.Templates, task.Related and task.Foresight, and of
// task.Repos what can be answered without one.
type Tasks struct {
	// Agent is what every template asks for.
	Agent string
	// Places is how many agents an account may run at once.
	Places int64
}

// Need is the agent, whatever the template is called.
func (t Tasks) Need(*db.Tx, string, string) (task.Need, bool, error) {
	return task.Need{Agent: t.Agent}, true, nil
}

// Needs is Need for every name.
func (t Tasks) Needs(_ *db.Tx, _ string, names []string) (map[string]task.Need, error) {
	out := map[string]task.Need{}
	for _, name := range names {
		out[name] = task.Need{Agent: t.Agent}
	}
	return out, nil
}

// Seats is how many agents every account may run at once.
func (t Tasks) Seats(*db.Tx, string) (int64, error) { return t.Places, nil }

// Spent is what the sessions have cost.
func (Tasks) Spent(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	return session.Spent(tx, taskIDs)
}

// SetAside is what the budgets have reserved.
func (Tasks) SetAside(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	return budget.SetAside(tx, taskIDs)
}

// Stops says that no budget lacks anything.
func (Tasks) Stops(*db.Tx, []string) ([]task.Stop, error) { return nil, nil }

// Wants says that nobody is asked for anything.
func (Tasks) Wants(*db.Tx, []string) ([]task.Want, error) { return nil, nil }

// PullNeeds says that no pull request needs a person.
func (Tasks) PullNeeds(*db.Tx, []string) (map[string]task.PullNeed, error) { return nil, nil }

// PullOpen says that no pull request is open.
func (Tasks) PullOpen(*db.Tx, string) (bool, error) { return false, nil }

// PullHead says that no pull request is open.
func (Tasks) PullHead(*db.Tx, string) (string, error) { return "", nil }

// InPlan says that there are no plans.
func (Tasks) InPlan(*db.Tx, *task.Row) (*task.Plan, error) { return nil, nil }

// AskExists says that there are no asks.
func (Tasks) AskExists(*db.Tx, string) (bool, error) { return false, nil }

// Endings says that nothing was tried.
func (Tasks) Endings(*db.Tx, string) ([]task.Ending, error) { return nil, nil }

// Pulse says that nothing was tried.
func (Tasks) Pulse(*db.Tx, string) (*task.Pulse, error) { return nil, nil }

// Changes says that no commit changes anything.
func (Tasks) Changes(context.Context, string, string) ([]string, error) { return nil, nil }

// Conflicts says that no two commits are in each other's way.
func (Tasks) Conflicts(context.Context, string, string, string) ([]string, error) { return nil, nil }

// Repos implements task.Repos with one function.
type Repos func(tx *db.Tx, id string) (task.Repo, error)

// ByName says that no repository has the name.
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
