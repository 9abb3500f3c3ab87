package flow

import (
	"cmp"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/review"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
)

// reviewPriority is the priority of the passes of a review: with the repairs, before new
// work.
const reviewPriority = repairPriority

// ReviewPulls tells reviews of pull requests. It is review.Pulls.
type ReviewPulls struct{ Pulls *pull.Service }

// Get reads a pull request of tx.Account; false if there is none.
func (r ReviewPulls) Get(tx *db.Tx, prID string) (review.Pull, bool, error) {
	return reviewPull(tx, prID, false)
}

// Lock is Get, and keeps other transactions from changing the pull request.
func (r ReviewPulls) Lock(tx *db.Tx, prID string) (review.Pull, bool, error) {
	return reviewPull(tx, prID, true)
}

func reviewPull(tx *db.Tx, prID string, locking bool) (review.Pull, bool, error) {
	found, ok, err := pull.ForReview(tx, prID, locking)
	if err != nil || !ok {
		return review.Pull{}, false, err
	}
	p, err := ofReview(tx, found)
	return p, err == nil, err
}

// ofReview adds to a pull request what its task says.
func ofReview(tx *db.Tx, f record.Reviewable) (review.Pull, error) {
	p := review.Pull{ID: f.ID, RepoID: f.RepoID, Number: f.Number, Title: f.Title, HeadRef: f.HeadRef, HeadSHA: f.HeadSHA,
		BaseRef: f.BaseRef, MergeBase: f.MergeBase, Change: f.Change, Open: f.Open, Why: f.Why, Watched: f.Watched, TaskID: f.TaskID}
	if f.TaskID == "" {
		return p, nil
	}
	work, ok, err := task.Get(tx, tx.Account, f.TaskID)
	if err != nil || !ok {
		return p, err
	}
	p.Template, p.RequestedBy = work.Template, asker(&work)
	if work.PlanID != nil {
		p.PlanDone, err = plan.IsDone(tx, *work.PlanID)
	}
	return p, err
}

// Titles reads number and title of pull requests of tx.Account, by id.
func (ReviewPulls) Titles(tx *db.Tx, prIDs []string) (map[string]review.Title, error) {
	briefs, err := record.Briefs(tx, prIDs)
	out := make(map[string]review.Title, len(briefs))
	for id, b := range briefs {
		out[id] = review.Title{Number: b.Number, Title: b.Title, URL: b.URL}
	}
	return out, err
}

// Reviewed says to a pull request how far its review has come.
func (r ReviewPulls) Reviewed(tx *db.Tx, prID, headSHA string, v review.Result) error {
	return r.Pulls.Progressed(tx, prID, headSHA, pull.ReviewProgress{
		Running: v.Running, Held: v.Held, Outcome: v.Outcome, Findings: v.Findings,
	})
}

// ReviewTasks queues the passes of reviews. It is review.Tasks.
type ReviewTasks struct {
	Tasks *task.Service
	Hosts *codehost.Hosts // that tasks clone from
}

// Queue queues a pass.
func (r ReviewTasks) Queue(tx *db.Tx, at repo.Ref, p review.Pass) (string, error) {
	by := p.RequestedBy
	if by == nil {
		by = new(string)
	}
	work, _, err := workOf(tx, p.PRID)
	if err != nil {
		return "", err
	}
	t, err := r.Tasks.Create(tx, TaskRepos{Hosts: r.Hosts}.Of(at), task.Spec{
		Kind: task.KindReview, Sink: task.SinkQueued, Priority: reviewPriority, Confidence: 1, Title: p.Title, Problem: p.Problem,
		Template: p.Template, Checkout: p.HeadSHA, ResultSchema: &p.Schema, PRID: &p.PRID, RequestedBy: by,
		Unbound: work.Unbound,
	})
	return t.ID, err
}

// Stop cancels a pass unless it is over.
func (r ReviewTasks) Stop(tx *db.Tx, taskID string) error { return StopTask(r.Tasks)(tx, taskID) }

// Held tells whether a pass is held.
func (ReviewTasks) Held(tx *db.Tx, taskID string) (bool, error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	return ok && t.Status == task.Held, err
}

// ReviewModels tells which model would carry a pass of a review out. It is review.Models.
type ReviewModels struct{}

// Resolve answers the template for the finder. A program that a template runs in the place
// of an agent reviews only if the policy names the template.
func (ReviewModels) Resolve(tx *db.Tx, named, work, prID string) (name, gap string, err error) {
	t, ok, err := template.ByName(tx, tx.Account, cmp.Or(named, work, template.Default))
	switch {
	case err != nil:
		return "", "", err
	case !ok:
		return "", review.GapUnresolved, nil
	case t.Agent == template.Command && named != "":
		return t.Name, "", nil
	case t.Agent == template.Command:
		return t.Name, review.GapUnresolved, nil
	}
	wish := wishOf(t)
	if wish.Repo, err = pull.RepoOf(tx, prID); err != nil { // for which others may have lent keys
		return "", "", err
	}
	keys, err := modelkey.Candidates(tx, tx.Account, wish)
	if err != nil {
		return "", "", err
	}
	switch need := demand(t, keys); {
	case need.NoKey != "" || need.WrongProvider != "":
		return t.Name, review.GapNoCredential, nil
	case need.NoModel:
		return t.Name, review.GapUnresolved, nil
	case named != "":
		return t.Name, "", nil
	}
	liked, err := workPreferred(tx, prID)
	if err != nil {
		return "", "", err
	}
	name, err = otherModel(tx, t, liked)
	return name, "", err
}

// Other answers a template of another model, if the account has one.
func (ReviewModels) Other(tx *db.Tx, name string) (string, error) {
	t, ok, err := template.ByName(tx, tx.Account, name)
	if err != nil || !ok || t.Agent == template.Command {
		return name, err
	}
	return otherModel(tx, t, modelkey.Pref{})
}

// otherModel finds a template of another model whose agent any box has that has the agent
// of t; else t itself. Where the work was done with a model that its person likes best,
// another model is another one than that.
func otherModel(tx *db.Tx, t template.Template, liked modelkey.Pref) (string, error) {
	all, err := template.All(tx, tx.Account)
	if err != nil {
		return "", err
	}
	keys, err := candidatesOf(tx, tx.Account, append(all, t))
	if err != nil {
		return "", err
	}
	modelOf := func(t template.Template, keys []modelkey.Candidate) string {
		if len(keys) == 0 {
			return ""
		}
		if model := cmp.Or(t.Model, keys[0].Provider.DefaultModel()); model != "" {
			return string(keys[0].Provider) + " " + model
		}
		return ""
	}
	own := modelOf(t, keys[len(all)])
	if liked.Provider != "" {
		own = string(liked.Provider) + " " + cmp.Or(liked.Model, liked.Provider.DefaultModel())
	}
	for i, o := range all {
		if other := modelOf(o, keys[i]); (o.Agent == t.Agent || o.Agent == template.Builtin) && other != "" && other != own {
			return o.Name, nil
		}
	}
	return t.Name, nil
}

// Brains tells what the newest runs of tasks used and recorded, by task.
func (ReviewModels) Brains(tx *db.Tx, taskIDs []string) (map[string]review.Seen, error) {
	runs, err := run.NewestOf(tx, taskIDs)
	if err != nil {
		return nil, err
	}
	models, err := session.ModelsOf(tx, taskIDs)
	out := map[string]review.Seen{}
	for id, r := range runs {
		seen := review.Seen{Provider: models[id].Provider, Model: models[id].Model, Program: r.Agent == template.Command}
		if r.StartedAt != nil {
			seen.Provenance = &review.Provenance{RunID: r.ID, BoxID: r.BoxID, Agent: r.Agent, AgentVersion: r.AgentVersion,
				Isolation: r.Isolation}
		}
		out[id] = seen
	}
	return out, err
}

// OpenFindings describes findings for the agents that answer them. It is babysit.Reviews.
type OpenFindings struct{}

// Round describes the findings of a pull request of tx.Account that wait for an answer.
func (OpenFindings) Round(tx *db.Tx, prID string) (string, error) {
	open, err := review.OpenOf(tx, prID)
	if err != nil || len(open) == 0 {
		return "", err
	}
	return review.RoundProblem(open), nil
}

// Posting answers since when a review is being posted at the host.
func (OpenFindings) Posting(tx *db.Tx, repoID, prID string) (time.Time, bool, error) {
	return review.PostingSince(tx, repoID, prID)
}

// BeginReview has the review of a head begin whose facts are known.
func BeginReview(reviews *review.Service) func(*db.Tx, pull.Head) error {
	return func(tx *db.Tx, h pull.Head) error {
		p, err := ofReview(tx, h.Pull)
		if err != nil {
			return err
		}
		return reviews.HeadKnown(tx, h.Repo, p)
	}
}

// EndReviews makes the findings of a pull request stale that is merged or closed.
func EndReviews(reviews *review.Service) func(*db.Tx, record.Note) error {
	return func(tx *db.Tx, n record.Note) error {
		if open, err := pull.IsOpen(tx, n.PRID); err != nil || open {
			return err
		}
		return reviews.PullOver(tx, n.PRID)
	}
}

// MoveReview moves a review with the task of its pass.
func MoveReview(reviews *review.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		t := m.Task
		if t.Kind != task.KindReview || t.Status == task.Completed || t.Status == task.Claimed {
			return nil
		}
		moved := review.TaskMoved{TaskID: t.ID, Running: t.Status == task.Running, Over: t.Status.Terminal(),
			Cancelled: t.Status == task.Cancelled, Held: t.Status == task.Held || m.From == task.Held}
		if t.Failure != nil {
			moved.Why = *t.Failure
		}
		return tx.As(t.AccountID, func() error { return reviews.Moved(tx, moved) })
	}
}
