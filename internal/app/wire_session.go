package app

import (
	"context"
	"time"

	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/money"
)

// sessions connects the sessions to the runs whose conversations they are.
func (a *App) sessions(p parts) *session.Service {
	return &session.Service{
		DB: a.db, Hub: a.hub, Keys: p.billing, Budget: p.budget, Logger: a.log, Clock: time.Now, Resolve: a.resolveModelToken(p.run),
		Say: p.run.Message,
		Await: func(ctx context.Context, runID, messageID string, wait time.Duration) (session.Outcome, error) {
			out, err := p.run.AwaitMessage(ctx, runID, messageID, wait)
			return session.Outcome{Status: out.Status, Reply: out.Reply}, err
		},
		Parse: func(yml string) (session.Candidate, []string) {
			p, problems := repo.ParsePolicy([]byte(yml))
			return session.Candidate{
				Template: p.Agent.Template, Isolation: p.Agent.Isolation, CheckCommand: p.Checks.Command, CheckTimeout: p.CheckTimeout(),
				MergeMode: p.Merge.Mode, TaskMicros: money.Micros(p.Budget.TaskUSD), RunMicros: money.Micros(p.Budget.RunUSD),
			}, problems
		},
	}
}
