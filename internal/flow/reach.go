package flow

import (
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
	"yardmaster/internal/reach"
)

// served is the task of tx.Account whose work a task is for: that of the pull request which
// it checks, reviews or repairs, or else itself.
func served(tx *db.Tx, t *task.Row) (task.Row, error) {
	if t.PRID == nil {
		return *t, nil
	}
	work, ok, err := workOf(tx, *t.PRID)
	if err != nil || !ok {
		return *t, err
	}
	return work, nil
}

// textOf tells whose text a run of a task is given. Strangers wrote what another system
// delivered, what was said in an issue by somebody who may not write to the repository, and
// what a box has handed in that another account has lent; what follows from that by asks,
// plans and pull requests is theirs, too. Whose heads are in a group of a merge queue, nobody
// asks.
func textOf(tx *db.Tx, t *task.Row) (out reach.Text, err error) {
	err = tx.As(t.AccountID, func() error {
		if fork, err := ofFork(tx, t); err != nil || fork {
			out = reach.Fork
			return err
		}
		work, err := served(tx, t)
		if err != nil {
			return err
		}
		theirs := t.Kind == task.KindCI && t.PRID == nil
		if !theirs {
			theirs, err = ofStrangers(tx, &work, t.PRID)
		}
		if out = reach.Account; theirs {
			out = reach.Strangers
		}
		return err
	})
	return out, err
}

// ofStrangers tells whether strangers have a hand in some work of tx.Account that a task is for,
// or in work on which it was begun before that is merged. prID is the pull request of that task.
func ofStrangers(tx *db.Tx, work *task.Row, prID *string) (theirs bool, err error) {
	all, err := builtOn(tx, work)
	for i := range all {
		if err != nil || theirs {
			break
		}
		if all[i].AskID != nil {
			theirs, err = ask.OfStrangers(tx, *all[i].AskID)
		}
	}
	if err != nil || theirs {
		return theirs, err
	}
	return byLent(tx, all, prID)
}

// deepest is how many tasks may be begun on one another for their chain to be looked at.
const deepest = 50

// builtOn is some work of tx.Account, and that on which it was begun and which is not merged.
func builtOn(tx *db.Tx, work *task.Row) ([]task.Row, error) {
	all := []task.Row{*work}
	for last := work; last.StackedOn != nil && len(all) < deepest; last = &all[len(all)-1] {
		on, _, err := task.Unmerged(tx, last.ID)
		if err != nil || on == "" {
			return all, err
		}
		below, ok, err := task.Get(tx, tx.Account, on)
		if err != nil || !ok {
			return all, err
		}
		all = append(all, below)
	}
	return all, nil
}

// Declares tells whether a run of a task declares anything at all.
func (RunSetup) Declares(tx *db.Tx, t *task.Row) (bool, error) {
	given, err := textOf(tx, t)
	return reach.Declares(given), err
}

// HeadRef returns the ref of the code host at which the head of the fork is that a task is
// about; empty for every other task, whose checkout is on a branch.
func (RunSetup) HeadRef(tx *db.Tx, t *task.Row) (ref string, err error) {
	at, _, err := standing(tx, t)
	if at.Fork && strings.HasPrefix(at.HeadRef, "refs/") {
		ref = at.HeadRef
	}
	return ref, err
}

// standing answers how the pull request stands that a task is about. fork tells that the
// task works on what another repository has, as far as anybody knows.
func standing(tx *db.Tx, t *task.Row) (at pull.Standing, fork bool, err error) {
	if t.PRID == nil {
		return at, false, nil
	}
	var ok bool
	err = tx.As(t.AccountID, func() error {
		at, ok, err = pull.StandingOf(tx, *t.PRID)
		return err
	})
	return at, !ok || at.Fork, err
}

// planner describes a run of a task of tx.Account as the origin of a plan: a person has
// asked for work in its repository, whatever sandbox that has.
func planner(tx *db.Tx, t *task.Row, runID string) (from ask.Origin, r repo.Ref, err error) {
	if r, err = repoAnywhere(tx, t.RepoID); err != nil {
		return from, r, err
	}
	given, err := textOf(tx, t)
	return ask.Origin{
		RunID: runID, TaskID: t.ID, TaskTitle: t.Title, Kind: t.Kind, RepoID: t.RepoID, Repo: r.FullName(), Text: given,
	}, r, err
}

// originOf describes a run of a task of tx.Account as the origin of an ask.
func originOf(tx *db.Tx, t *task.Row, runID string) (ask.Origin, error) {
	from, r, err := planner(tx, t, runID)
	if err != nil {
		return from, err
	}
	work, err := served(tx, t)
	if err != nil {
		return from, err
	}
	from.Serves, from.AskID, from.BudgetMicros = work.ID, work.AskID, work.BudgetMicros
	from.Weaker, err = weaker(tx, t, r)
	return from, err
}

// weaker tells whether a task that is minted in a repository may run in a weaker sandbox
// than the runs of a task there. A task whose template is gone ran in the strictest.
func weaker(tx *db.Tx, t *task.Row, r repo.Ref) (bool, error) {
	if t.Kind == task.KindCI { // it has no template, and the table knows it
		return false, nil
	}
	mine, ok, err := template.ByName(tx, tx.Account, t.Template)
	if err != nil || !ok {
		return !ok, err
	}
	minted, err := templateFor(tx, r.Policy.Agent.Template)
	if err != nil {
		return false, err
	}
	floor := r.Policy.Agent.Isolation
	has := queue.Stricter(string(mine.Isolation), string(floor))
	for _, name := range []string{minted.Name, minted.Challenger} { // it may get either
		t, there, err := template.ByName(tx, tx.Account, name)
		if gets := queue.Stricter(string(t.Isolation), string(floor)); err != nil || there && queue.Stricter(has, gets) != gets {
			return true, err
		}
	}
	return false, nil
}

// FileOfRun files the ask that a run declares.
func FileOfRun(asks *ask.Service) func(*db.Tx, run.Declaration[protocol.AskFiled]) error {
	return func(tx *db.Tx, d run.Declaration[protocol.AskFiled]) error {
		from, err := originOf(tx, d.Task, d.Run.ID)
		if err != nil {
			return err
		}
		return asks.FileOfRun(tx, ask.OfRun{
			Origin: from, By: d.Task.RequestedBy,
			ID: d.Declared.ID, Title: d.Declared.Title, Body: d.Declared.Body, For: d.Declared.Repo, DedupeKey: d.Declared.DedupeKey,
		})
	}
}

// Waits says why the slices of a scout's report wait for a person.
func (Scouts) Waits(tx *db.Tx, scout *task.Row, repoIDs []string) (string, error) {
	run := ""
	if scout.RunID != nil {
		run = *scout.RunID
	}
	from, _, err := planner(tx, scout, run)
	if err != nil {
		return "", err
	}
	for _, id := range repoIDs {
		to, err := repoAnywhere(tx, id)
		if err != nil {
			return "", err
		}
		if wait, _ := from.Wait(reach.Plan, id, to.FullName()); wait != nil {
			return wait.Why, nil
		}
	}
	return "", nil
}

// byStranger begins the question of a run that was given text of strangers.
const byStranger = "From a run that was given text of strangers, who may have written this: "

// question tells whether a run may put a question to people, and what it begins with.
func question(tx *db.Tx, t *task.Row, v reach.Verb) (before string, ok bool, err error) {
	given, err := textOf(tx, t)
	switch reach.Of(t.Kind, v, reach.Own, given).Outcome {
	case reach.Done:
		return "", true, err
	case reach.Marked:
		return byStranger, true, err
	}
	return "", false, err
}

// AskForAction asks a person for what a run wishes. A pull request of another repository
// than the run's is none.
func AskForAction(pulls *pull.Service) func(*db.Tx, run.Declaration[protocol.ActionProposed]) error {
	return func(tx *db.Tx, d run.Declaration[protocol.ActionProposed]) error {
		return tx.As(d.Task.AccountID, func() error {
			before, ok, err := question(tx, d.Task, reach.Action)
			if err != nil || !ok {
				return err
			}
			prID, ok, err := pull.ByNumber(tx, d.Run.RepoID, d.Declared.Pull)
			if err != nil || !ok {
				return err
			}
			why := before + d.Declared.Why
			if before != "" {
				why = strings.ToValidUTF8(why[:min(len(why), pull.MaxWhy)], "")
			}
			return pulls.Wish(tx, pull.Wish{PRID: prID, Kind: d.Declared.Kind, Label: d.Declared.Label, Why: why})
		})
	}
}

// DeclareBlockers takes the blockers that runs declare.
func DeclareBlockers(s *blocker.Service) func(*db.Tx, run.Declaration[protocol.BlockerDeclared]) error {
	return func(tx *db.Tx, d run.Declaration[protocol.BlockerDeclared]) error {
		before, ok, err := question(tx, d.Task, reach.Blocker)
		if err != nil || !ok {
			return err
		}
		b := d.Declared
		b.Question = before + b.Question
		return s.Declare(tx, d.Task.RepoID, d.Task.ID, d.Run.ID, b)
	}
}

// BlockerAsks files what remains when a blocker is cleared too late for its
// task.
type BlockerAsks struct{}

// File files an ask that may do what the task was allowed, or waits for a person as an ask
// of its run would: anybody may open the link that clears a blocker.
func (BlockerAsks) File(tx *db.Tx, f blocker.FollowUp) (string, error) {
	by := "blocker:" + f.BlockerID
	if actor := policy.From(tx.Context()); !actor.Anonymous() {
		by = actor.Label()
	}
	t, _, err := task.Get(tx, tx.Account, f.TaskID)
	if err != nil {
		return "", err
	}
	person := t.RequestedBy
	if person == nil {
		answers := policy.From(tx.Context()).UserID // or nobody
		person = &answers
	}
	from, err := originOf(tx, &t, f.RunID)
	if err != nil {
		return "", err
	}
	wait, _ := from.Wait(reach.FollowUp, f.RepoID, from.Repo)
	filed, _, err := ask.File(tx, ask.Filing{
		RepoIDs: []string{f.RepoID}, Title: f.Title, Body: f.Body, Source: ask.FromBlocker, DedupeKey: f.BlockerID, By: by,
		RequestedBy: person, From: &from, Wait: wait, Scopes: policy.Scopes(policy.WriteTasks),
	})
	return filed.ID, err
}
