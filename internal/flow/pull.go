package flow

import (
	"cmp"
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/hosttoken"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
)

// Pulls answers what repositories and plans ask about pull requests. It
// implements repo.Pulls and plan.Pulls.
type Pulls struct{}

// OpenHeads answers the recorded head of each branch of a repository of
// tx.Account with an open pull request.
func (Pulls) OpenHeads(tx *db.Tx, repoID string) (map[string]string, error) {
	return pull.OpenHeads(tx, repoID)
}

// IsOpen tells whether a pull request of tx.Account is open.
func (Pulls) IsOpen(tx *db.Tx, prID string) (bool, error) { return pull.IsOpen(tx, prID) }

// Shown returns the pull requests of tx.Account among prIDs as plans show them, by
// id.
func (Pulls) Shown(tx *db.Tx, prIDs []string) (map[string]plan.PR, error) {
	briefs, err := record.Briefs(tx, prIDs)
	out := make(map[string]plan.PR, len(briefs))
	for prID, b := range briefs {
		out[prID] = plan.PR{ID: b.ID, Number: b.Number, Title: b.Title, URL: b.URL, State: measure.PullState(b.State)}
	}
	return out, err
}

// IdleTasks lists the tasks of a plan of tx.Account that go on only if a person
// acts.
func (Pulls) IdleTasks(tx *db.Tx, planID string) ([]string, error) {
	return pull.IdleOfPlan(tx, planID)
}

// What a task about a pull request is worth: a check comes before all else, and
// a repair before new work.
const (
	checkPriority  = 100
	repairPriority = 90
)

// CheckTasks implements ci.Tasks.
type CheckTasks struct {
	Tasks *task.Service
	Hosts *codehost.Hosts // that tasks clone from
}

// Check queues the task that runs the check of a repository on a commit.
func (c CheckTasks) Check(tx *db.Tx, r repo.Ref, prID, sha string) (string, error) {
	work, _, err := workOf(tx, prID)
	if err != nil {
		return "", err
	}
	spec := task.Spec{
		Kind: task.KindCI, Sink: task.SinkDirect, Priority: checkPriority, Confidence: 1,
		Title: fmt.Sprintf("Check %.10s", sha), Problem: r.Policy.Checks.Command,
		Command: []string{"sh", "-c", r.Policy.Checks.Command}, Checkout: sha, RequestedBy: asker(&work), Unbound: work.Unbound,
	}
	if prID != "" {
		spec.PRID = &prID
	}
	t, err := c.Tasks.Create(tx, TaskRepos{Hosts: c.Hosts}.Of(r), spec)
	return t.ID, err
}

// Stop cancels a check unless it is over.
func (c CheckTasks) Stop(tx *db.Tx, taskID string) error { return StopTask(c.Tasks)(tx, taskID) }

// Checks implements babysit.Checks.
type Checks struct{ *ci.Service }

// CheckPulls implements ci.Pulls.
type CheckPulls struct{ BaseURL string } // of the pages

// Page is the address of the page of a pull request.
func (c CheckPulls) Page(prID string) string { return record.PageAt(c.BaseURL, prID) }

// LookedAfter tells whether a pull request is open, looked after, and at a head.
func (CheckPulls) LookedAfter(tx *db.Tx, prID, sha string) (bool, error) {
	return pull.LookedAfter(tx, prID, sha)
}

// AtHost answers what the host says of the failed checks of a head.
func (Checks) AtHost(tx *db.Tx, repoID, sha string) (babysit.HostFailure, bool, error) {
	f, ok, err := ci.AtHost(tx, repoID, sha)
	return babysit.HostFailure(f), ok, err
}

// Of answers what came of the check of a head; false if there was none.
func (Checks) Of(tx *db.Tx, prID, sha string) (record.Check, bool, error) {
	r, ok, err := ci.Of(tx, prID, sha)
	return record.Check(r), ok, err
}

// PullTasks implements pull.Tasks.
type PullTasks struct {
	Tasks *task.Service
	Hosts *codehost.Hosts // that tasks clone from
}

// Repair queues the task of a round, with the template of the task whose work it
// repairs, and has that task move on. A fault of it means not now.
func (p PullTasks) Repair(tx *db.Tx, r repo.Ref, round babysit.Round) (string, error) {
	work, ok, err := task.Lock(tx, tx.Account, round.TaskID)
	if err != nil {
		return "", err
	}
	to := TaskRepos{Hosts: p.Hosts}.Of(r)
	t, err := p.Tasks.Create(tx, to, task.Spec{
		Kind: task.KindBabysit, Sink: task.SinkQueued, Priority: repairPriority, Confidence: 1, Title: round.Title, Problem: round.Problem,
		Template: cmp.Or(work.Template, to.Template, p.Tasks.DefaultTemplate), Branch: round.Branch, Start: round.Start, PRID: &round.PRID,
		AskID: work.AskID, RequestedBy: asker(&work), Unbound: work.Unbound || round.ByOthers,
	})
	if err == nil && ok {
		err = p.Tasks.SetStuck(tx, &work, false)
	}
	return t.ID, err
}

// Reopen moves a task that failed because its pull request was closed, and only
// such a one.
func (p PullTasks) Reopen(tx *db.Tx, taskID, prID string) (reopened bool, err error) {
	err = withTask(tx, taskID, func(t *task.Row) error {
		if t.Status != task.Failed || t.FailureKind == nil || *t.FailureKind != task.PRClosed {
			return nil
		}
		reopened = true
		return p.Tasks.Reopened(tx, t, prID)
	})
	return reopened, err
}

// Spent is what tasks have cost, with the repair of their pull requests.
func (PullTasks) Spent(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	return measure.SpentOn(tx, taskIDs)
}

// Unmerged names the task on whose work another was begun while that is not
// merged; dropped tells that it will not be.
func (PullTasks) Unmerged(tx *db.Tx, taskID string) (on string, dropped bool, err error) {
	return task.Unmerged(tx, taskID)
}

// ByLent tells whether a lent box has had a hand in a pull request.
func (PullTasks) ByLent(tx *db.Tx, taskID, prID string) (bool, error) {
	return run.ByLent(tx, taskID, &prID)
}

// asker is the person whose work a task is, for the tasks that look after it.
func asker(t *task.Row) *string {
	if t.RequestedBy == nil {
		return new(string)
	}
	return t.RequestedBy
}

// withTask locks a task of tx.Account and hands it to fn, if there is one.
func withTask(tx *db.Tx, taskID string, fn func(*task.Row) error) error {
	t, ok, err := task.Lock(tx, tx.Account, taskID)
	if err != nil || !ok {
		return err
	}
	return fn(&t)
}

// workOf is the task that a pull request of tx.Account came of, if there is one.
func workOf(tx *db.Tx, prID string) (task.Row, bool, error) {
	taskID, err := pull.TaskOf(tx, prID)
	if err != nil || taskID == "" {
		return task.Row{}, false, err
	}
	return task.Get(tx, tx.Account, taskID)
}

// Signers implements pull.People.
type Signers struct {
	Address string // of the agent in the trailers of a commit
	Persons HostPersons
}

// At finds the user of tx.Account to whom an account at a host belongs.
func (s Signers) At(tx *db.Tx, host string, who codehost.User) (pull.Known, error) {
	userID, sure, err := s.Persons.User(tx, host, who)
	if err != nil || userID == "" {
		return pull.Known{}, err
	}
	barred, err := barredHere(tx, userID)
	out := pull.Known{Barred: barred}
	if sure {
		out.Label = "user:" + userID
	}
	return out, err
}

// Name is what people call whoever a label names: a user, or somebody at a code host.
func (Signers) Name(tx *db.Tx, label string) (string, error) {
	if login, there := strings.CutPrefix(label, pull.HostPrefix); there {
		return login, nil
	}
	who, err := person(tx, label)
	return cmp.Or(who.Name, label), err
}

// Same tells whether two labels may be of one person. A label of a code host and one of a
// user are of two people only if a token of the user says who they are there.
func (s Signers) Same(tx *db.Tx, host, a, b string) (bool, error) {
	if a == b {
		return true, nil
	}
	userA, isUserA := strings.CutPrefix(a, "user:")
	userB, isUserB := strings.CutPrefix(b, "user:")
	loginA, thereA := strings.CutPrefix(a, pull.HostPrefix)
	loginB, thereB := strings.CutPrefix(b, pull.HostPrefix)
	switch {
	case isUserA && isUserB, thereA && thereB:
		return false, nil
	case isUserA && thereB:
		return s.mayBe(tx, host, userA, loginB)
	case isUserB && thereA:
		return s.mayBe(tx, host, userB, loginA)
	}
	// An agent, or git of the server, is nobody; of another credential nobody knows whose.
	return strings.HasPrefix(a, "pat:") || strings.HasPrefix(b, "pat:"), nil
}

// mayBe tells whether a login at a host may be a user's: it is the known one, or none is known.
func (Signers) mayBe(tx *db.Tx, host, userID, login string) (bool, error) {
	known, err := hosttoken.LoginAt(tx, userID, host)
	return err == nil && (known == "" || strings.EqualFold(known, login)), err
}

// Asker is the person for whom a task is done.
func (Signers) Asker(tx *db.Tx, taskID, host string) (label, login string, err error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	if err != nil || !ok || t.RequestedBy == nil {
		return "", "", err
	}
	login, err = hosttoken.LoginAt(tx, *t.RequestedBy, host)
	return "user:" + *t.RequestedBy, login, err
}

// Signers names the person who asked for a task, the one who decided about its
// merge, and the agent.
func (s Signers) Signers(tx *db.Tx, taskID, decidedBy string) (out merge.Signers, err error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	if err != nil || !ok {
		return out, err
	}
	if t.RequestedBy != nil {
		if out.RequestedBy, err = person(tx, "user:"+*t.RequestedBy); err != nil {
			return out, err
		}
	}
	if out.ApprovedBy, err = person(tx, decidedBy); err != nil {
		return out, err
	}
	agent, _, err := template.ByName(tx, tx.Account, t.Template)
	out.Agent = codehost.Person{Name: string(agent.Agent), Email: s.Address}
	if agent.Model != "" {
		out.Agent.Name += " (" + agent.Model + ")"
	}
	return out, err
}

// person is the user that a label names; nobody if it names none.
func person(tx *db.Tx, label string) (codehost.Person, error) {
	id, ok := strings.CutPrefix(label, "user:")
	if !ok {
		return codehost.Person{}, nil
	}
	u, known, err := people.UserByID(tx, id)
	if err != nil || !known {
		return codehost.Person{}, err
	}
	return codehost.Person{Name: cmp.Or(u.Name, u.Login), Email: u.Email}, nil
}
