package flow

import (
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
)

// TaskRepos tells tasks and runs of repositories. It is task.Repos.
type TaskRepos struct{ Hosts *codehost.Hosts }

// Of is a repository as tasks and runs see it.
func (t TaskRepos) Of(r repo.Ref) task.Repo {
	return task.Repo{
		ID: r.ID, Owner: r.Owner, Name: r.Name, HostRepo: r.HostRepo(), Enabled: r.Enabled, Gone: r.Gone, Uncovered: r.Uncovered,
		Lacks: r.Lacks, InTheWay: r.InTheWay, Unborn: r.Unborn, DefaultBranch: r.DefaultBranch, CloneURL: t.Hosts.CloneURL(r.HostRepo()),
		HeldAt: r.HeldAt, UncoveredAt: r.UncoveredAt,
		Template: r.Policy.Agent.Template, Isolation: string(r.Policy.Agent.Isolation),
		Conflicts: r.Policy.Conflicts, CheckTimeout: r.Policy.CheckTimeout(),
		LFS: r.Policy.Checkout.LFS, Depth: r.Policy.Checkout.Depth,
	}
}

// ByName finds a repository of tx.Account; false if there is none of the name.
func (t TaskRepos) ByName(tx *db.Tx, owner, name string) (task.Repo, bool, error) {
	r, ok, err := repo.ByName(tx, owner, name)
	if err != nil || !ok {
		return task.Repo{}, false, err
	}
	return t.Of(r), true, nil
}

// ByID finds a repository by an id that a stored row holds; that there is none is
// an error.
func (t TaskRepos) ByID(tx *db.Tx, id string) (task.Repo, error) {
	r, err := repoAnywhere(tx, id)
	if err != nil {
		return task.Repo{}, err
	}
	return t.Of(r), nil
}

// ByIDs is ByID for several at once, by id, without those that there are not.
func (t TaskRepos) ByIDs(tx *db.Tx, ids []string) (map[string]task.Repo, error) {
	found, err := repo.ByIDsAnywhere(tx, ids)
	out := make(map[string]task.Repo, len(found))
	for _, r := range found {
		out[r.ID] = t.Of(r)
	}
	return out, err
}

// repoAnywhere is the repository that a stored row holds the id of.
func repoAnywhere(tx *db.Tx, id string) (repo.Ref, error) {
	r, ok, err := repo.ByIDAnywhere(tx, id)
	if err == nil && !ok {
		err = fmt.Errorf("there is no repository %s", id)
	}
	return r, err
}

// TaskRelations are what other domains know of tasks. It is task.Related: every
// method asks the domain that knows.
type TaskRelations struct{}

// Spent is what the sessions of tasks cost, in micro-dollars by task.
func (TaskRelations) Spent(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	return measure.SpentOn(tx, taskIDs)
}

// SetAside is what is reserved for calls of tasks, in micro-dollars by task.
func (TaskRelations) SetAside(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	return budget.SetAside(tx, taskIDs)
}

// Stops tells of held tasks what their budgets lack, who can let them go on, and
// how.
func (TaskRelations) Stops(tx *db.Tx, taskIDs []string) ([]task.Stop, error) {
	all, err := stopsOf(tx, taskIDs)
	out := make([]task.Stop, len(all))
	for i, s := range all {
		when, call, args := clears(s)
		out[i] = task.Stop{TaskID: s.ID, ClearsWhen: when}
		if call != "" {
			out[i].Clear = &task.Clear{Capability: call, Args: args}
		}
	}
	return out, err
}

// Wants is what tasks wait for people to give, oldest first.
func (TaskRelations) Wants(tx *db.Tx, taskIDs []string) ([]task.Want, error) {
	open, err := blocker.Wants(tx, taskIDs)
	out := make([]task.Want, len(open))
	for i, w := range open {
		out[i] = task.Want{TaskID: w.TaskID, BlockerID: w.ID, Form: w.Form, Parked: w.Parked, Since: w.Since}
	}
	return out, err
}

// PullNeeds lists what only people can do about pull requests, by pull request.
func (TaskRelations) PullNeeds(tx *db.Tx, prIDs []string) (map[string]task.PullNeed, error) {
	all, err := pull.NeedsOf(tx, prIDs)
	out := make(map[string]task.PullNeed, len(all))
	for id, n := range all {
		need := task.PullNeed{Since: n.Since, ClearsWhen: n.ClearsWhen}
		if n.Capability != nil {
			need.Clear = &task.Clear{Capability: *n.Capability, Args: n.Args}
		}
		out[id] = need
	}
	return out, err
}

// PullWaits tells which pull requests wait for a limit of their code host, or for room in the
// queue.
func (TaskRelations) PullWaits(tx *db.Tx, prIDs []string) (map[string]task.PullWait, error) {
	all, err := pull.Waits(tx, prIDs)
	out := make(map[string]task.PullWait, len(all))
	for id, w := range all {
		out[id] = task.PullWait(w)
	}
	return out, err
}

// PullOpen tells whether a pull request is neither merged nor closed.
func (TaskRelations) PullOpen(tx *db.Tx, prID string) (bool, error) { return pull.IsOpen(tx, prID) }

// InPlan is what a task of a plan is in it.
func (TaskRelations) InPlan(tx *db.Tx, t *task.Row) (*task.Plan, error) { return plan.InPlan(tx, t) }

// AskExists tells whether there is the ask.
func (TaskRelations) AskExists(tx *db.Tx, askID string) (bool, error) { return ask.Exists(tx, askID) }

// Endings lists how the tries of a task ended, oldest first.
func (TaskRelations) Endings(tx *db.Tx, taskID string) ([]task.Ending, error) {
	return run.Endings(tx, taskID)
}

// Activities are the titles of the newest tools that the runs of tasks have called.
func (TaskRelations) Activities(tx *db.Tx, taskIDs []string) (map[string]string, error) {
	return run.Activities(tx, taskIDs)
}

// Pulse tells how the newest run of a task is doing; nil without one.
func (TaskRelations) Pulse(tx *db.Tx, taskID string) (*task.Pulse, error) {
	return run.Pulse(tx, taskID)
}
