package app

import (
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/stream"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/policy"
)

// topics are what clients can follow.
func topics(p parts) []stream.Topic {
	return []stream.Topic{
		{Name: "tasks", Scope: policy.ReadTasks, Kinds: []string{"task"}, Key: "task_id", Fixed: true,
			Rows: stream.Rows(p.task.Rows, func(t task.Task) string { return t.ID })},
		{Name: "asks", Scope: policy.ReadTasks, Kinds: []string{"ask"}, Fixed: true,
			Rows: stream.Rows(p.ask.Rows, func(a ask.Ask) string { return a.ID })},
		{Name: "plans", Scope: policy.ReadTasks, Kinds: []string{"plan"}, Key: "plan_id", Fixed: true,
			Rows: stream.Rows(p.plan.Rows, func(pl plan.Plan) string { return pl.ID })},
		{Name: "blockers", Scope: policy.ReadTasks, Kinds: []string{"blocker"}, Fixed: true,
			Rows: stream.Rows(p.blocker.Rows, func(b blocker.Blocker) string { return b.ID })},
		{Name: "prs", Scope: policy.ReadPRs, Kinds: []string{"pr"}, Key: "pr_id", Fixed: true,
			Rows: stream.Rows(p.pull.Rows, func(r pull.PullRequest) string { return r.ID })},
		{Name: "approvals", Scope: policy.ReadPRs, Kinds: []string{"approval"},
			Rows: stream.Rows(p.pull.Approvals, func(a pull.Approval) string { return a.ID })},
		{Name: "ci", Scope: policy.ReadRunners, Kinds: []string{"ci"}, Fixed: true,
			Rows: stream.Rows(pull.Checks, func(c pull.Check) string { return c.ID })},
		{Name: "runners", Scope: policy.ReadRunners, Kinds: []string{"box", "runner"}, Key: "box_id",
			Rows: stream.Rows(p.box.Rows, func(b box.Box) string { return b.ID })},
		{Name: "sessions", Scope: policy.ReadSessions, Kinds: []string{"run", "session"}, Key: "run_id", Fixed: true,
			Rows: stream.Rows(session.Rows, func(s session.Session) string { return s.ID })},
		{Name: "repos", Scope: policy.ReadRepos, Kinds: []string{"repo"}, Fixed: true,
			Rows: stream.Rows(p.repo.Rows, func(r repo.Repository) string { return r.ID })},
	}
}
