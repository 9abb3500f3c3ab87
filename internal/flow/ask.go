package flow

import (
	"context"
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/gateway"
	"yardmaster/internal/domain/kb"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/policy"
)

// AskQueue implements ask.Queue.
type AskQueue struct {
	Tasks *task.Service
	Queue *queue.Service
	Hosts *codehost.Hosts // that tasks clone from
}

// Mint queues a task with the template that its repository wishes for.
func (q AskQueue) Mint(tx *db.Tx, n ask.NewTask) (string, error) {
	r, err := TaskRepos{Hosts: q.Hosts}.ByID(tx, n.RepoID)
	if err != nil {
		return "", err
	}
	agent, err := templateFor(tx, r.Template)
	if err != nil {
		return "", err
	}
	t, err := q.Tasks.Create(tx, r, task.Spec{
		Kind: n.Kind, Sink: task.SinkQueued, Title: n.Title, Problem: n.Problem, Template: agent.Name, Priority: n.Priority,
		Confidence: 1, DependsOn: n.DependsOn, Files: n.Files, Labels: n.Labels, AskID: &n.AskID, RequestedBy: &n.RequestedBy,
		Unbound: n.Unbound, BudgetMicros: n.BudgetMicros,
	})
	return t.ID, err
}

// Full tells whether the account's queue takes no more tasks.
func (q AskQueue) Full(tx *db.Tx) (bool, error) { return q.Queue.Full(tx) }

// Task finds a task of tx.Account.
func (AskQueue) Task(tx *db.Tx, taskID string) (ask.TaskRef, bool, error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	return ask.TaskRef{ID: t.ID, RepoID: t.RepoID, Status: string(t.Status), Title: t.Title}, ok, err
}

// Newest lists the newest tasks of tx.Account.
func (AskQueue) Newest(tx *db.Tx, repoID string) ([]ask.Sketch, error) {
	rows, err := task.Newest(tx, repoID)
	out := make([]ask.Sketch, len(rows))
	for i, r := range rows {
		out[i] = ask.Sketch{ID: r.ID, RepoID: r.RepoID, Repo: r.Repo, Kind: r.Kind, Status: string(r.Status), Title: r.Title,
			Problem: r.Problem, Files: r.Files.V}
	}
	return out, err
}

// AskPages implements ask.Pages.
type AskPages struct{}

// Near are the pages of a repository that are near to a text.
func (AskPages) Near(tx *db.Tx, repoID, text string) ([]ask.Page, error) {
	rows, err := kb.Near(tx, repoID, text)
	out := make([]ask.Page, len(rows))
	for i, r := range rows {
		out[i] = ask.Page{Slug: r.Slug, Text: r.Text, Stale: r.Stale}
	}
	return out, err
}

// templateFor is the template that a repository wishes for, if the account has
// it, and the account's default otherwise.
func templateFor(tx *db.Tx, wish string) (template.Template, error) {
	t, ok, err := template.ByName(tx, tx.Account, wish)
	if err == nil && !ok {
		t, _, err = template.ByName(tx, tx.Account, template.Default)
	}
	return t, err
}

// AskBoxes implements ask.Boxes.
type AskBoxes struct{}

// Fleet lists the boxes, agents and templates that could carry out work of
// tx.Account.
func (AskBoxes) Fleet(tx *db.Tx) (f ask.Fleet, err error) {
	if f.BoxesOnline, f.Agents, err = box.Serving(tx, tx.Account); err == nil {
		f.Templates, err = template.Names(tx, tx.Account)
	}
	return f, err
}

// AskPlans implements ask.Plans.
type AskPlans struct {
	Plans *plan.Service
	Hosts *codehost.Hosts // that tasks clone from
}

// Author makes a plan with a group for each slice.
func (p AskPlans) Author(tx *db.Tx, n ask.NewPlan) (out ask.Authored, err error) {
	d := plan.Draft{
		Overview: "# " + n.Title + "\n\n" + n.Summary + "\n", Source: plan.SourceTriage,
		AskID: &n.AskID, RequestedBy: &n.RequestedBy, Hold: n.Hold,
	}
	for i, s := range n.Slices {
		r, err := TaskRepos{Hosts: p.Hosts}.ByID(tx, s.RepoID)
		if err != nil {
			return out, err
		}
		if i == 0 {
			d.Repo = r
		}
		u := plan.Unit{Slug: unitSlug(i), Repo: r, Title: s.Title, Problem: s.Problem, Files: s.Files, DependsOn: map[string]string{}}
		for _, up := range s.DependsOn {
			u.DependsOn[unitSlug(up)] = plan.Code
		}
		d.Units = append(d.Units, u)
	}
	out.PlanID, out.TaskIDs, err = p.Plans.AuthorTasks(tx, d)
	return out, err
}

// unitSlug names the slices of a plan that triage made, from 1.
func unitSlug(i int) string { return fmt.Sprintf("slice-%02d", i+1) }

// maxVerdict is the longest verdict, in tokens.
const maxVerdict = 16_000

// TriageModel implements ask.Judge with the account's own model, as the
// templates of its repositories choose it.
type TriageModel struct {
	DB      *db.DB
	Gateway *gateway.Service
}

// Begin opens a session of kind triage.
func (j TriageModel) Begin(ctx context.Context, m ask.Matter) (ask.Talk, error) {
	return open(ctx, j.DB, j.Gateway, gateway.Opening{
		AccountID: m.AccountID, RepoID: m.RepoID, RequestedBy: m.RequestedBy, Trigger: "ask", Kind: "triage",
		MaxTokens: maxVerdict, Before: m.Before,
	})
}

// open opens a session of a judge with the model of the template that its repository wishes for.
func open(ctx context.Context, d *db.DB, g *gateway.Service, o gateway.Opening) (*gateway.Conversation, error) {
	err := d.Read(db.WithAccount(ctx, o.AccountID), func(tx *db.Tx) error {
		wish := template.Default
		if o.RepoID != "" {
			r, ok, err := repo.ByID(tx, o.RepoID)
			if err != nil {
				return err
			}
			if ok {
				wish = r.Policy.Agent.Template
			}
		}
		t, err := templateFor(tx, wish)
		if t.Agent != template.Command {
			o.Provider, o.BaseURL, o.Model = string(t.Provider), t.BaseURL, t.Model
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return g.Open(ctx, o)
}

// WakeAsk takes up the ask again whose judge's session a limit let go on.
func WakeAsk(asks *ask.Service) func(*db.Tx, budget.Freed) error {
	return func(tx *db.Tx, f budget.Freed) error { return asks.Wake(tx, f.Account, f.ID) }
}

// PlanAsks implements plan.Asks.
type PlanAsks struct{}

// File files the ask for a plan over several repositories.
func (PlanAsks) File(tx *db.Tx, f plan.Filing) (string, error) {
	filed, _, err := ask.File(tx, ask.Filing{
		RepoIDs: f.RepoIDs, Title: f.Title, Body: f.Body, Source: ask.FromPlan, Scopes: policy.From(tx.Context()).Scopes,
	})
	return filed.ID, err
}

// LabelsOf lists the labels of an ask of tx.Account.
func (PlanAsks) LabelsOf(tx *db.Tx, askID string) (map[string]string, error) {
	a, _, err := ask.Get(tx, askID)
	return a.Labels, err
}

// TasksOf lists the tasks that an ask was scheduled as; false if there is no
// such ask.
func (PlanAsks) TasksOf(tx *db.Tx, askID string) ([]string, bool, error) { return ask.Tasks(tx, askID) }
