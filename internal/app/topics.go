package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/stream"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/policy"
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

// ownTopics lists the topics of which each person follows their own rows.
func ownTopics(p wired) []stream.Own {
	return []stream.Own{{Name: "notifications", Scope: policy.ReadAccount, Rows: inboxes{p.notes}}}
}

// inboxes implements stream.OwnRows.
type inboxes struct{ notes *notification.Service }

func (i inboxes) Notice(userID string) string { return notification.Topic(userID) }

func (i inboxes) Newest(tx *db.Tx, userID string, limit int) ([]stream.Row, int64, error) {
	all, at, err := i.notes.Newest(tx, userID, limit)
	return i.rows(all), at, err
}

func (i inboxes) Since(tx *db.Tx, userID string, since int64, limit int) ([]stream.Row, int64, error) {
	all, at, err := i.notes.Since(tx, userID, since, limit)
	return i.rows(all), at, err
}

// rows are notifications as rows of a stream. What is archived leaves it.
func (inboxes) rows(all []notification.Notification) []stream.Row {
	out := make([]stream.Row, len(all))
	for i, n := range all {
		out[i].ID = n.ID
		if n.ArchivedAt == nil {
			out[i].Value = n
		}
	}
	return out
}
