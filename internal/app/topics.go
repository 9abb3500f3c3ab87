package app

import (
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/stream"
	"yardmaster/internal/domain/task"
)

// topics lists the topics that clients can follow.
func topics(p wired) []stream.Topic {
	return []stream.Topic{
		{Topic: task.Topic, Rows: stream.Rows(p.task.Rows, func(t task.Task) string { return t.ID })},
		{Topic: ask.Topic, Rows: stream.Rows(p.ask.Rows, func(a ask.Ask) string { return a.ID })},
		{Topic: plan.Topic, Rows: stream.Rows(p.plan.Rows, func(pl plan.Plan) string { return pl.ID })},
		{Topic: blocker.Topic, Rows: stream.Rows(p.blocker.Rows, func(b blocker.Blocker) string { return b.ID })},
		{Topic: pull.Topic, Rows: stream.Rows(p.pull.Rows, func(r pull.Request) string { return r.ID })},
		{Topic: pull.ApprovalTopic, Rows: stream.Rows(p.pull.Approvals, func(a pull.Approval) string { return a.ID })},
		{Topic: ci.Topic, Rows: stream.Rows(ci.Rows, func(c ci.Check) string { return c.ID })},
		{Topic: box.Topic, Rows: stream.Rows(p.box.Rows, func(b box.Box) string { return b.ID })},
		{Topic: session.Topic, Rows: stream.Rows(session.Rows, func(s session.Session) string { return s.ID })},
		{Topic: repo.Topic, Rows: stream.Rows(p.repo.Rows, func(r repo.Repository) string { return r.ID })},
	}
}
