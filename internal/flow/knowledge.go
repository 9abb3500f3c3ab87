package flow

import (
	"context"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/gateway"
	"yardmaster/internal/domain/kb"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
	"yardmaster/internal/reach"
)

const (
	// keeperPriority is the priority of tasks that keep pages: all else comes first.
	keeperPriority = 10
	// maxOpinion is the longest answer about a proposal, in tokens.
	maxOpinion = 1_000
)

// PageModel implements kb.Model with the account's own model, as the template of the
// repository chooses it.
type PageModel struct {
	DB      *db.DB
	Gateway *gateway.Service
}

// Begin opens a session of kind kb.
func (j PageModel) Begin(ctx context.Context, accountID, repoID string) (kb.Talk, error) {
	return open(ctx, j.DB, j.Gateway, gateway.Opening{
		AccountID: accountID, RepoID: repoID, Trigger: "knowledge", Kind: task.KindKB, MaxTokens: maxOpinion, Longest: 10 * time.Minute,
	})
}

// PageTasks implements kb.Tasks.
type PageTasks struct {
	Tasks *task.Service
	Hosts *codehost.Hosts // that tasks clone from
}

// Keep files a task of kind kb.
func (p PageTasks) Keep(tx *db.Tx, repoID, title, problem string) (string, error) {
	r, err := TaskRepos{Hosts: p.Hosts}.ByID(tx, repoID)
	if err != nil {
		return "", err
	}
	agent, err := templateFor(tx, r.Template)
	if err != nil {
		return "", err
	}
	t, err := p.Tasks.Create(tx, r, task.Spec{
		Kind: task.KindKB, Sink: task.SinkQueued, Title: title, Problem: problem, Template: agent.Name, Priority: keeperPriority,
		Confidence: 1, RequestedBy: new(string),
	})
	return t.ID, err
}

// Over tells whether a task of tx.Account has ended, and its text.
func (PageTasks) Over(tx *db.Tx, taskID string) (problem string, over bool, err error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	return t.Problem, !ok || t.Status.Terminal(), err
}

// ProposePages takes what runs would have the pages of their repository say.
func ProposePages(pages *kb.Service) func(*db.Tx, run.Declaration[protocol.PageProposed]) error {
	return func(tx *db.Tx, d run.Declaration[protocol.PageProposed]) error {
		return tx.As(d.Task.AccountID, func() error {
			before, ok, err := question(tx, d.Task, reach.Page)
			if err != nil || !ok {
				return err
			}
			p := kb.Proposed{
				RunID: d.Run.ID, TaskID: d.Task.ID, ID: d.Declared.ID, Keeper: d.Task.Kind == task.KindKB, Named: d.Task.Problem,
				Strangers: before != "", Slug: d.Declared.Slug, Title: d.Declared.Title, Why: d.Declared.Why, Body: d.Declared.Body,
				Add: d.Declared.Add, Files: d.Declared.Files,
			}
			if d.Task.BaseSHA != nil && codehost.ValidSHA(*d.Task.BaseSHA) {
				p.Commit = *d.Task.BaseSHA
			}
			return pages.Propose(tx, d.Task.RepoID, p)
		})
	}
}
