package app

import (
	"context"
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/task"
)

// wirePlans makes the plans domain: its tasks, the reports of its scouts, and
// what becomes of a commit that its documents made.
func (a *App) wirePlans(p parts) *plan.Service {
	plans := &plan.Service{
		DB: a.db, Tasks: p.task, Host: a.host, Logger: a.log, CommitName: p.run.CommitName, CommitEmail: p.run.CommitEmail,
		Surveyed: func(tx *db.Tx, taskID string) (out plan.Survey, ok bool, err error) {
			t, ok, err := task.Get(tx, tx.Account, taskID)
			if err != nil || !ok {
				return out, false, err
			}
			report, c, ok, err := p.run.Survey(tx, &t)
			if ok {
				out = plan.Survey{Report: report, Summary: c.Summary, SplitHints: c.SplitHints, Handoffs: c.Handoffs, AccessNeeded: c.AccessNeeded}
			}
			return out, ok, err
		},
		Wrote: func(ctx context.Context, r codehost.Repo, branch, old, sha string) error {
			err := p.repo.OnPush(context.WithoutCancel(ctx), builtin.PushEvent{Repo: r, Who: "plan.file", Updates: []builtin.RefUpdate{{Ref: "refs/heads/" + branch, Old: old, New: sha}}})
			if err != nil {
				return fmt.Errorf("record the commit of a plan: %w", err)
			}
			return nil
		},
	}
	return plans
}
