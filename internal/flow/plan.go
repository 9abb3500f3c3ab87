package flow

import (
	"context"
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
)

// Scouts implements plan.Scouts.
type Scouts struct{ Runs *run.Service }

// Survey answers what the newest run of a task of tx.Account reported; false
// without a report.
func (s Scouts) Survey(tx *db.Tx, taskID string) (out plan.Survey, ok bool, err error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	if err != nil || !ok {
		return out, false, err
	}
	report, c, ok, err := s.Runs.Survey(tx, &t)
	if ok {
		out = plan.Survey{Report: report, Summary: c.Summary, SplitHints: c.SplitHints, Handoffs: c.Handoffs, AccessNeeded: c.AccessNeeded}
	}
	return out, ok, err
}

// PlanRepos implements plan.Repos.
type PlanRepos struct{ Repos *repo.Service }

// Wrote records a commit of a plan's documents as a push, though the caller may
// be gone.
func (p PlanRepos) Wrote(ctx context.Context, r codehost.Repo, branch, old, sha string) error {
	err := p.Repos.OnPush(context.WithoutCancel(ctx), codehost.PushEvent{
		Repo: r, Who: "plan.file", Updates: []codehost.RefUpdate{{Ref: "refs/heads/" + branch, Old: old, New: sha}},
	})
	if err != nil {
		return fmt.Errorf("record the commit of a plan: %w", err)
	}
	return nil
}
