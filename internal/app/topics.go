package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/stream"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/policy"
)

// topics lists the topics that clients can follow.
func topics(p wired) []stream.Topic {
	return []stream.Topic{
		{Topic: task.Topic, In: newestIn(task.NewestIn), Marks: doing{}, Rows: stream.RepoRows(p.task.Rows,
			func(t task.Task) string { return t.ID }, func(t task.Task) []string { return []string{t.Repo} })},
		{Topic: ask.Topic, In: newestIn(ask.NewestIn), Rows: stream.RepoRows(p.ask.Rows,
			func(a ask.Ask) string { return a.ID }, func(a ask.Ask) []string { return repoOf(a.Repo) })},
		{Topic: plan.Topic, In: newestIn(plan.NewestIn), Rows: stream.RepoRows(p.plan.Rows,
			func(pl plan.Plan) string { return pl.ID }, func(pl plan.Plan) []string { return pl.Repos })},
		{Topic: plan.GroupTopic, In: newestIn(plan.NewestIn), Follows: []stream.Following{{Topic: plan.Topic}},
			Rows: stream.RepoRows(p.plan.GroupRows,
				func(g plan.Group) string { return g.ID }, func(g plan.Group) []string { return []string{g.Repo} })},
		{Topic: blocker.Topic, In: newestIn(blocker.NewestIn), Rows: stream.RepoRows(p.blocker.Rows,
			func(b blocker.Streamed) string { return b.ID }, func(b blocker.Streamed) []string { return []string{b.Repo} })},
		{Topic: escalation.Topic, In: newestIn(escalation.NewestIn), Rows: stream.RepoRows(escalation.Rows,
			func(e escalation.Escalation) string { return e.ID }, func(e escalation.Escalation) []string { return repoOf(e.Repo) })},
		{Topic: record.Topic, In: newestIn(pull.NewestIn), Marks: pull.Marks{}, Rows: stream.RepoRows(p.pull.Rows,
			func(r pull.Request) string { return r.ID }, func(r pull.Request) []string { return []string{r.Repo} })},
		{Topic: record.ApprovalTopic, In: newestIn(pull.NewestApprovalsIn), Marks: pull.QuestionMarks{},
			Rows: stream.RepoRows(p.pull.Approvals,
				func(a pull.Approval) string { return a.ID }, func(a pull.Approval) []string { return []string{a.Repo} })},
		{Topic: ci.Topic, In: newestIn(ci.NewestIn), Rows: stream.RepoRows(ci.Rows,
			func(c ci.Check) string { return c.ID }, func(c ci.Check) []string { return []string{c.Repo} })},
		{Topic: box.Topic, Rows: stream.Rows(p.box.Rows, func(b box.Box) string { return b.ID })},
		{Topic: session.Topic, In: newestIn(session.NewestIn), Rows: stream.RepoRows(session.Rows,
			func(s session.Session) string { return s.ID }, func(s session.Session) []string { return repoOf(s.Repo) })},
		{Topic: repo.Topic, In: newestIn(itself), Rows: stream.RepoRows(p.repo.Rows,
			func(r repo.Repository) string { return r.ID }, func(r repo.Repository) []string { return []string{r.FullName} })},
		// What a session cost is spent by the time that something happens to it.
		{Topic: budget.Topic, Follows: []stream.Following{{Topic: session.Topic, ID: budget.Account}},
			Rows: stream.Rows(p.budget.Rows, func(b budget.Limit) string { return b.ID })},
	}
}

// newestIn implements stream.Newest by a function of a domain.
type newestIn func(tx *db.Tx, repoID string, limit int) ([]string, error)

func (f newestIn) NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return f(tx, repoID, limit)
}

// itself is the repository as the one row about it.
func itself(_ *db.Tx, repoID string, _ int) ([]string, error) { return []string{repoID}, nil }

// repoOf is a repository that there may not be.
func repoOf(name *string) []string {
	if name == nil {
		return nil
	}
	return []string{*name}
}

// doing implements stream.Marks for tasks: what their agents do changes without an event.
type doing struct{}

func (doing) Marks(tx *db.Tx) (map[string]string, error) { return run.Activities(tx, nil) }

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

// repoIDs implements stream.Repos.
type repoIDs struct{}

func (repoIDs) RepoID(tx *db.Tx, owner, name string) (string, bool, error) {
	r, ok, err := repo.ByName(tx, owner, name)
	return r.ID, ok, err
}
